"""The training step of Keras, taken over once: what `make_train_function` leaves in `model.train_function`.

Keras pulls the batch inside its compiled function. Here it is pulled outside, and Keras's own compiled step runs on it:
so waiting and computing are told apart, and a batch outlives a step that fails. It is also faster: 1.03 ms became
0.92 ms on a step of 1 ms (TensorFlow 2.21 on two cores), since the optional that Keras wraps its logs in is not needed.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from typing import Any, Callable, Optional, Sequence

from ..never_raise import failed, guarded, outcome
from ..telemetry import now
from ..tensorflow import seams as tf_seams
from ..tensorflow.nesting import nesting
from ..user_errors import passing
from . import seams
from .checkpoint import CheckpointWriter
from .fit_progress import Fit
from .on_jax import kept_with_state
from .rescue import Rescue
from .steps_per_execution import kept_between, one_by_one
from .torch_driver import rescued as on_torch

Step = Callable[[Any], Any]  # of a batch, returns logs
Aspect = Callable[[Step], Step]


def compose(step: Step, aspects: Sequence[Aspect]) -> Step:
    """The first aspect is the outermost."""
    for aspect in reversed(aspects):
        step = aspect(step)
    return step


def telemetry(fit: Fit, traces: TracedSteps, optimizer: Callable[[], Any]) -> Aspect:
    def aspect(step: Step) -> Step:
        def timed(batch: Any) -> Any:
            began = now()
            logs = step(batch)
            fit.stepped(now() - began, logs, traces, optimizer)
            return logs

        return timed

    return aspect


class TracedSteps:
    """Counts how often TensorFlow traced the step anew."""

    def __init__(self, functions: Sequence[Any]) -> None:
        self._functions = [f for f in functions if hasattr(f, "experimental_get_tracing_count")]
        self.seen = 0
        self.stepped = False  # which may be without a trace, in pieces
        self.preparing_s = 0.0

    def can_trace(self) -> bool:
        return bool(self._functions)

    def new(self) -> int:
        """How many since the last call; 0.3 µs."""
        count = 0
        for function in self._functions:
            count += function.experimental_get_tracing_count()
        new, self.seen = max(0, count - self.seen), count
        return new


def take_over(
    model: Any, function: Any, fit: Fit, tf: Any, keep: Optional[CheckpointWriter], rescue: Rescue, numerics: Any = None
) -> Optional[Callable[..., Any]]:
    """What stands in for Keras's own `function`; runs it piece by piece where that is possible, whole elsewhere."""
    on_batch = seams.inner(function, "one_step_on_data")
    compiled = seams.compiled_step(on_batch)
    model_ref = weakref.ref(model)
    if tf is None and _backend() == "torch" and not model.jit_compile and _may_raise(rescue):
        function = on_torch(model, function, rescue.recorder, rescue.k) or function
    rescued = rescue.of_step(model_ref, compiled, "train")
    if tf is None or on_batch is None or not _is_plain(model):
        traces = TracedSteps([seams.inner(function, "multi_step_on_iterator")])
        run = _whole(function, fit, traces, model_ref)
        if tf is None and keep is not None:
            return kept_with_state(run, keep, fit, model_ref) if _backend() == "jax" else kept_by_batch(run, keep)
        if tf is None or on_batch is None or model.steps_per_execution == 1:
            return run
        traces = TracedSteps([compiled])
        count = model.steps_per_execution
        executions = numerics.of_executions(model_ref, count) if numerics is not None else None
        aspects = [telemetry(fit, traces, _optimizer_of(model_ref))]
        aspects += [one.around for one in (executions, rescued) if one is not None]
        run = one_by_one(run, compose(on_batch, aspects), fit, count, rescued, executions, tf)
        if keep is None or not seams.on_one_device(model):
            return run
        build = functools.partial(prepare, compiled=compiled, traces=traces, tf=tf)
        return kept_between(run, keep, build, lambda: fit.steps_at_once(model_ref()), tf)
    watched = numerics.of_step(model_ref) if numerics is not None else None
    inner: list[Aspect] = [one for one in (watched, rescued.around if rescued is not None else None) if one is not None]
    return _apart(function, compiled, fit, model_ref, tf, keep, inner, _in_pieces(rescued, rescue))


def kept_by_batch(run: Step, keep: CheckpointWriter) -> Step:
    """On torch: Keras has pulled the batch."""

    def train_function(data: Any) -> Any:
        call = keep.call
        if call is None:
            return run(data)
        keep.begin_pace()
        if now() >= keep.next_at:
            keep.approach(None)
        keep.before_step(call)
        logs = run(data)
        call.position.trained(1)
        return logs

    return train_function


def _in_pieces(rescued: Any, rescue: Rescue) -> Callable[[TracedSteps], bool]:
    """Whether the graph of a whole batch may wait, perhaps for ever. A checkpoint is put back into what tracing makes."""
    if rescued is None:
        return lambda _traces: False
    return lambda traces: rescued.at_risk and (rescue.anew or traces.stepped)


def _may_raise(rescue: Rescue) -> bool:
    """On the CPU running out of memory is a kill: only a run that was killed is in pieces there."""
    cuda: Any = getattr(sys.modules["torch"], "cuda", None)
    return rescue.wanted and (rescue.catches(None) or bool(cuda is not None and cuda.is_available()))


def _backend() -> str:
    return str(sys.modules["keras"].backend.backend())


def _is_plain(model: Any) -> bool:
    return model.steps_per_execution == 1 and seams.on_one_device(model)


def _optimizer_of(model_ref: Any) -> Callable[[], Any]:
    return lambda: getattr(model_ref(), "optimizer", None)


def _apart(
    function: Any, compiled: Any, fit: Fit, model_ref: Any, tf: Any, keep: Optional[CheckpointWriter], inner: list[Aspect],
    waits: Callable[[TracedSteps], bool],
) -> Callable[..., Any]:  # fmt: skip
    traces = TracedSteps([compiled])
    whole = _whole(function, fit, traces, model_ref)
    # Given something that is no tf.data iterator, Keras runs its step on what that yields, as train_on_batch does.
    kept = [keep.aspect] if keep is not None else []

    def ready(iterator: Any) -> bool:
        return waits(traces) or prepare(iterator, compiled, traces, tf)

    step = compose(lambda batch: function((batch,)), [telemetry(fit, traces, _optimizer_of(model_ref)), *kept, *inner])
    last: list[Any] = [lambda: None]  # the iterator seen last, weakly; None once this way was found closed
    owned, executing_eagerly = tf.data.Iterator, tf.executing_eagerly

    def train_function(iterator: Any) -> Any:
        if not executing_eagerly():
            return function(iterator)
        nesting.depth += 1
        try:
            if last[0] is None:
                return whole(iterator)
            if isinstance(iterator, owned):
                if last[0]() is not iterator:
                    fit.begins(traces)
                    last[0] = weakref.ref(iterator) if ready(iterator) else None
                    if last[0] is None:
                        if keep is not None:
                            keep.cannot()
                        return whole(iterator)
                    if keep is not None:
                        keep.fresh(iterator)
                began = now()
                if keep is not None and began >= keep.next_at:
                    keep.approach(iterator)
                    began = now()
                batch = iterator.get_next()
                fit.pulled(now() - began, batch)
                return step(batch)
            if type(iterator) is types.GeneratorType:
                fit.begins(traces)
                for batch in iterator:
                    fit.pulled(0.0, batch)
                    return step(batch)
            return whole(iterator)
        finally:
            nesting.depth -= 1

    train_function.prepare_for = lambda dataset: prepare(dataset, compiled, traces, tf)  # type: ignore[attr-defined]
    return train_function


def _whole(function: Any, fit: Fit, traces: TracedSteps, model_ref: Any) -> Callable[..., Any]:
    """Several steps at once, several replicas, other backends: Keras's function as it is, timed from outside."""
    optimizer = _optimizer_of(model_ref)

    def train_function(*args: Any, **kwargs: Any) -> Any:
        nesting.depth += 1
        try:
            fit.begins(traces)
            began = now()
            result = function(*args, **kwargs)
            fit.stepped_several(now() - began, result, traces, optimizer, model_ref)
            return result
        finally:
            nesting.depth -= 1

    return train_function


def prepare(iterator: Any, compiled: Any, traces: TracedSteps, tf: Any) -> bool:
    """Traces the step for the shapes the data set declares, as Keras does, before it sees the first batch's own.

    Without it a last, smaller batch would mean a second trace, and a graph specialised to the batch size need not give
    the same bits. False where that cannot be done. An error of the step itself is the user's and goes to him.
    """
    if not traces.can_trace() or tf.config.functions_run_eagerly():
        return True
    began = now()
    ready = tracing_of(iterator, compiled, tf)
    if ready is None:
        return False
    _, error = outcome(ready)
    if error is not None:
        if _entered(error, "one_step_on_data"):  # the traceback says whose error it is
            with passing:
                raise error
        failed("prepare", error)
        return False
    traces.preparing_s = now() - began
    return True


@guarded
def tracing_of(iterator: Any, compiled: Any, tf: Any) -> Optional[Callable[[], Any]]:
    def declared(spec: Any) -> Any:
        return None if tf_seams.is_nothing(spec, tf) else spec

    data = tf.nest.map_structure(declared, iterator.element_spec)
    # A call of a tf.function cuts TensorFlow's frames out of a traceback; this way in does not by itself.
    return functools.partial(tf_seams.filter_traceback(compiled.get_concrete_function), data)


def _entered(error: BaseException, name: str) -> bool:
    there = error.__traceback__
    while there is not None:
        if there.tb_frame.f_code.co_name == name:
            return True
        there = there.tb_next
    return False
