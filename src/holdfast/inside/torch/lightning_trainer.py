"""Lightning's Trainer with automatic optimization: out of memory in a step is survived with the same batch.

The seam is the closure of automatic optimization: `training_step`, dropping the gradients, backward. In pieces each of
them is run by the same functions of Lightning's, dropping only once; the hooks around backward are called once, too.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections import OrderedDict
from typing import Any, Iterator, Optional

from ..never_raise import guarded, unseen
from ..out_of_memory import is_out_of_memory
from ..rescue_engine import CannotSplit
from ..telemetry import Recorder
from .batch_split import Split, Step
from .lightning_logs import Learnt, Logs

ONE_DEVICE = "SingleDeviceStrategy"
ONCE = ("on_before_backward", "on_after_backward")


class _Step(Step):
    def __init__(self, original: Any, closure: Any, args: Any, kwargs: Any, call: Any, learnt: Learnt) -> None:
        self.whole = functools.partial(original, closure, *args, **kwargs)  # type: ignore[method-assign]
        self._closure = closure
        self._call = call  # the module through which hooks are called
        self._loop = closure._step_fn.func.__self__
        self._arguments = closure._step_fn.args[0]
        self._trainer = self._loop.trainer
        self.model, self.batch = self._trainer.lightning_module, self._arguments["batch"]
        self.keeps_gradients = closure._zero_grad_fn is None
        self._dropped = self._loop.optim_progress.optimizer.zero_grad.current.completed
        self._fx = self.model._current_fx_name
        self._logs = Logs(self._trainer, learnt)
        self._hooked = False
        self._results: list[Any] = []

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        return "16" in str(self._trainer.precision)

    def failed(self, error: Optional[BaseException]) -> None:
        self.model._current_fx_name = self._fx  # Lightning leaves it where it was when a hook raises
        came_to_backward = _came_to_backward(error, self._closure._backward_fn)
        self._hooked = self._hooked or came_to_backward
        self._logs.failed(came_to_backward)

    def begins(self) -> None:
        self._results = []
        self._logs.begins()
        if self._closure._zero_grad_fn is None:
            return
        if self._loop.optim_progress.optimizer.zero_grad.current.completed == self._dropped:
            self._closure._zero_grad_fn()
            return
        with sys.modules["torch"].no_grad():
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad.zero_()

    def piece(self, batch: Any, share: float) -> None:
        with self._logs.piece():
            result = self._forward(batch)
            with self._hooks():
                self._closure._backward_fn(result.closure_loss * share)
            self._hooked = True
        result.closure_loss = None
        self._results.append(result)

    def ends(self, rows: list[int], shares: list[float], known: list[str]) -> Any:
        for call in (self._call._call_callback_hooks, self._call._call_lightning_module_hook):
            call(self._trainer, "on_after_backward")
        self._logs.ends(rows, shares, known)
        loss = sum(result.loss * share for result, share in zip(self._results, shares))
        extra = self._logs.together([result.extra for result in self._results], rows)
        return type(self._results[-1])(loss, extra=extra)

    def trial(self, batch: Any, gradients: bool) -> Any:
        precision = self._trainer.strategy.precision_plugin
        scaler = getattr(precision, "scaler", None)
        with self._logs.trial():
            try:
                if scaler is not None:  # one that is still to be found may overflow, and that says nothing about rows
                    precision.scaler = None
                if not gradients:
                    with sys.modules["torch"].no_grad():
                        return self._forward(batch).loss
                result = self._forward(batch)
                self._hooked, hooked = True, self._hooked
                with self._hooks():
                    self._closure._backward_fn(result.closure_loss)
                self._hooked = hooked
                return result.loss
            finally:
                if scaler is not None:
                    precision.scaler = scaler

    def heard(self, of_parts: dict[str, tuple[float, float]]) -> None:
        self._logs.heard(of_parts)

    def wants_more(self, known: list[str]) -> bool:
        return self._logs.unclear(known)

    def disclosures(self) -> list[str]:
        return self._logs.disclosures()

    def _forward(self, batch: Any) -> Any:
        result = self._loop._training_step(OrderedDict(self._arguments, batch=batch))
        if result.closure_loss is None:
            raise CannotSplit("its training_step returns no loss")
        return result

    @contextlib.contextmanager
    def _hooks(self) -> Iterator[None]:
        """Before backward: once a batch. After it: by `ends`."""
        call = self._call
        originals = call._call_callback_hooks, call._call_lightning_module_hook

        def filtered(inner: Any) -> Any:
            def hook(trainer: Any, name: str, *args: Any, **kwargs: Any) -> Any:
                if name in ONCE and (self._hooked or name != ONCE[0]):
                    return None
                return inner(trainer, name, *args, **kwargs)

            return hook

        call._call_callback_hooks, call._call_lightning_module_hook = map(filtered, originals)
        try:
            yield
        finally:
            call._call_callback_hooks, call._call_lightning_module_hook = originals


def install(recorder: Recorder, name: str) -> None:
    module: Any = sys.modules[name]
    if name.endswith(".manual"):
        _install_manual(recorder, module._ManualOptimization)
        return
    closure_class, call = module.Closure, module.call
    original = closure_class.closure
    known: Any = weakref.WeakKeyDictionary()

    @guarded
    def step_of(closure: Any, args: Any, kwargs: Any) -> Optional[tuple[Split, _Step]]:
        loop = closure._step_fn.func.__self__
        trainer = loop.trainer
        model = trainer.lightning_module
        if model not in known:
            known[model] = Split(recorder, model, why_not(trainer, model)), Learnt(model)
        split, learnt = known[model]
        if not split.refused and trainer.fit_loop.epoch_loop.batch_progress.current.ready <= 1:
            split.look_again(model)  # once an epoch: it may have been moved or changed
            learnt.look_again(model)
        if closure._backward_fn is None or "batch" not in closure._step_fn.args[0]:
            return None
        return split, _Step(original, closure, args, kwargs, call, learnt)

    def closure(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = step_of(self, args, kwargs)
        if found is None:
            return original(self, *args, **kwargs)
        try:
            return found[0].run(found[1])
        except BaseException as error:
            unseen(error)
            raise

    closure_class.closure = functools.wraps(original)(closure)


def _install_manual(recorder: Recorder, loop_class: Any) -> None:
    """A script that updates by itself is left alone; that is said, once."""
    original = loop_class.run
    said: list[str] = []

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            if is_out_of_memory(error) and not said:
                said.append("manual")
                recorder.event("rescue.refused", reason="it updates its weights by itself", where="train")
            raise

    loop_class.run = functools.wraps(original)(run)


def _came_to_backward(error: Optional[BaseException], backward: Any) -> bool:
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        if trace.tb_frame.f_code is backward.__code__:
            return True
        trace = trace.tb_next
    return False


def why_not(trainer: Any, model: Any) -> str:
    """What cannot be split, in words; "" where it may be tried."""
    strategy = type(trainer.strategy).__name__
    if strategy != ONE_DEVICE or trainer.world_size > 1:
        return f"training by {strategy} is left as it is"
    if any(getattr(parameter, "_post_accumulate_grad_hooks", None) for parameter in model.parameters()):
        return "weights are updated within the backward pass"
    return ""
