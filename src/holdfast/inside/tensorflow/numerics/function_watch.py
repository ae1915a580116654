"""A step of the script's own in a `tf.function`, watched: replayed with the arguments it was called with."""

from __future__ import annotations

import inspect
import sys
import weakref
from typing import Any, Callable, ContextManager, Iterator, List, Optional, Tuple

from ...keras import seams as keras_seams
from ...keras.undo import replaced_here
from ...never_raise import outcome
from ...numerics.bound import Bound, NumbersGoneBad
from ...numerics.events import (
    BATCH_SKIPPED,
    LOSS,
    METRIC,
    SLOT,
    WEIGHTS,
    Before,
    NonFinite,
    tell_gave_up,
    tell_non_finite,
    tell_went_on,
)  # fmt: skip
from ...numerics.plain_numbers import told
from ...numerics.schedule import Schedule
from ...telemetry import Recorder
from .examination import Examination, Examined, Leaf, of_batch, replaced, unknown
from .finiteness import first_bad, is_finite, is_float, quiet
from .flight_recorder import MOST, Failing, FlightRecorder
from .loop_samples import LoopSamples
from .op_record import UPDATE
from .snapshot import Snapshot
from .step_watch import CHECK_SHARE, Outcome, StepWatch

TARGETS = ("y", "label", "target", "y_true")  # how arguments that are targets are named, or begin
METRICS = ("total", "count", "true_positives", "false_positives", "true_negatives", "false_negatives")
ORDER = (WEIGHTS, SLOT, METRIC)  # in which they are looked at: the first that is bad is told
ITSELF = "itself"  # the result is the loss
CALLS_UNDONE = 100  # in 1,000 steps: as many as batches with bad rows
Given = Tuple[Tuple[Any, ...], Any]  # args, kwargs


class FunctionWatch(StepWatch):
    def __init__(self, recorder: Recorder, tf: Any, function: Any, optimizer: Callable[[], Any]) -> None:
        super().__init__(recorder, tf)
        self.function: Callable[[], Any] = weakref.ref(function)
        self.optimizer = optimizer
        self.given: Optional[Given] = None  # a call's arguments: they choose the trace that is asked for its variables
        self.incidents = self.incident = TapeIncidents(self)
        self._schedule = Schedule(share=CHECK_SHARE)
        self._samples = LoopSamples(recorder, tf, self.function, optimizer)
        self.well, self.begins = self._well, self._samples.begins
        self.measured: Callable[[], None] = lambda: None  # called once the gradient's own norm is told

    def _well(self, _watch: StepWatch, given: Given, step: int) -> float:
        """The first steps are looked at by their number: such a loop may be over before the clock has moved."""
        if self._schedule.is_due(step):
            self._schedule.looked(step, self._check_s)
        due = self._schedule.next_step
        assert self.flight is not None
        loss = None if self.key is None else float(self.loss_in(self.latest))
        sampled = self._samples.sample(self.flight, given, step, loss) if self.repeatable() else MOST
        if self._samples.has_gradients:
            self.measured()
        return min(sampled, max(1, due - step) if due else MOST)

    def first_step(self, first: Optional[Snapshot], result: Any) -> None:
        """It was made before its variables were known; `first` has what it read of them."""
        flight = self.flight
        assert flight is not None and flight.good is not None and self.given is not None
        self.key = self.key_of(result)
        with quiet():
            loss_is_bad = self.key is not None and not is_finite(self.loss_in(result))
            seen_in = LOSS if loss_is_bad else flight.bad_in(flight.good)
            if seen_in is not None:
                step = self.recorder.steps
                failing = None
                if first is not None:
                    failing = Failing(step, 0, self.given, first, flight.good, result, seen_in)
                self.incidents.first(flight, failing, self.given, step, seen_in)

    def variables(self) -> Optional[Tuple[List[Any], List[str]]]:
        function = self.function()
        if function is None or self.given is None:
            return None
        traced = function.get_concrete_function(*self.given[0], **self.given[1])
        optimizer = self.optimizer()
        slots = {id(keras_seams.value_or_itself(one)) for one in getattr(optimizer, "variables", ())}
        kinds = [(_kind(one, slots), one) for one in traced.variables]
        kinds.sort(key=lambda pair: ORDER.index(pair[0]))
        return [one for _, one in kinds], [kind for kind, _ in kinds]

    def is_alive(self) -> bool:
        return self.function() is not None

    def key_of(self, logs: Any) -> Any:
        if is_scalar(logs):
            return ITSELF
        items = logs.items() if isinstance(logs, dict) else enumerate(logs) if isinstance(logs, (list, tuple)) else ()
        return next((key for key, value in items if is_scalar(value)), None)

    def loss_in(self, logs: Any) -> Any:
        return logs if self.key == ITSELF else logs[self.key]

    def repeatable(self) -> bool:
        """Not where it takes its data itself, from an iterator that it was given or holds."""
        args = self.tf.nest.flatten(self.given)
        plain = (self.tf.Tensor, sys.modules["numpy"].ndarray, int, float, str, bytes, type(None))
        return any(is_float(one) for one in args) and all(isinstance(one, plain) for one in args)


def _kind(variable: Any, slots: Any) -> str:
    if id(variable) in slots:
        return SLOT
    return METRIC if variable.name.split(":")[0].split("/")[-1] in METRICS else WEIGHTS


def is_scalar(value: Any) -> bool:
    return getattr(value, "shape", None) == () and is_float(value)


class TapeIncidents:
    def __init__(self, watch: FunctionWatch) -> None:
        self._watch = watch
        self._bound = Bound(CALLS_UNDONE)

    def __call__(
        self, watch: FunctionWatch, given: Optional[Given], result: Any, step: int, seen_in: str
    ) -> Optional[Outcome]:
        flight = watch.flight
        assert flight is not None
        given = watch.given = given or watch.given  # none where it was seen between two calls
        assert given is not None
        present, done = Snapshot(flight.variables, step), None
        try:
            failing = self._replayed(flight)
            examined = self._examined(failing, given, flight)
            self._tell(flight, failing, examined, step, seen_in)
            if failing is not None and self._may_act(flight, failing):
                done = self._go_on(flight, failing, result, step)
        finally:
            if done is None:
                present.put_back()
        watch.sick = done is None or done.ending is not None
        if done is None and seen_in == METRIC:
            flight.pass_over_metrics(present)
            watch.sick = False
        return done

    def first(self, flight: FlightRecorder, failing: Optional[Failing], given: Given, step: int, seen_in: str) -> None:
        """Of a step without a whole state before it: told, not acted on."""
        present = Snapshot(flight.variables, step)
        try:
            self._tell(flight, failing, self._examined(failing, given, flight), step, seen_in)
        finally:
            present.put_back()
        self._watch.sick = True

    def _replayed(self, flight: FlightRecorder) -> Optional[Failing]:
        watch = self._watch
        if flight.good is None or not flight.whole or not watch.repeatable():
            return None
        return flight.replay(watch.run, lambda logs: watch.loss_in(logs) if watch.key is not None else None)

    # -- where it came from

    def _examined(self, failing: Optional[Failing], given: Given, flight: FlightRecorder) -> Examined:
        leaves = self._leaves(given if failing is None else failing.batch)
        bad = next((leaf for leaf in leaves if is_float(leaf.tensor) and not is_finite(leaf.tensor)), None)
        if failing is None:
            if bad is not None:
                return of_batch(bad)._replace(reproduced=False, replay="seen in what the step was called with")
            return unknown(self._why_not(flight), False)
        failing.before.put_back()
        args, kwargs = failing.batch
        function = self._watch.function()
        examination = Examination(lambda: function(*args, **kwargs), leaves, self._watch.tf)
        done, error = outcome(examination.examined, *self._parts(examination))
        if error is not None:
            text = f"the step was repeated; operation by operation it ended in {type(error).__name__}: {error}"
            return of_batch(bad) if bad is not None else unknown(text, True)
        examined: Examined = done
        return examined if examined.reproduced else examined._replace(reproduced=True)

    def _why_not(self, flight: FlightRecorder) -> str:
        if not self._watch.repeatable():
            return "this step takes its data itself and cannot be repeated"
        if not flight.whole:
            return "more had happened since the last good state than was kept"
        return "the steps since the last good state were repeated, and all stayed finite"

    def _parts(self, examination: Examination) -> Iterator[ContextManager[Any]]:
        if keras_seams.is_keras_3():
            layer = keras_seams.layer_class()
            yield replaced(layer, "__call__", examination.layer_call(layer.__call__))
        optimizer = self._watch.optimizer()
        if optimizer is not None:
            yield replaced_here(optimizer, "apply", examination.in_phase(UPDATE, optimizer.apply))

    def _leaves(self, given: Given) -> List[Leaf]:
        tf, found = self._watch.tf, []
        for number, (name, value) in enumerate(self._named(given)):
            for leaf in tf.nest.flatten(value):
                if is_float(leaf):
                    is_target = name.lower().startswith(TARGETS) or (number == 1 and not name.lower().startswith("x"))
                    found.append(Leaf(name, is_target, tf.convert_to_tensor(leaf)))
        return found

    def _named(self, given: Given) -> Iterator[Tuple[str, Any]]:
        args, kwargs = given
        function = self._watch.function()
        parameters = list(inspect.signature(function.python_function).parameters)
        parameters = parameters[-len(args) :] if len(parameters) > len(args) else parameters
        for number, value in enumerate(args):
            yield (parameters[number] if number < len(parameters) else f"argument {number}"), value
        yield from kwargs.items()

    # -- what is told

    def _tell(
        self, flight: FlightRecorder, failing: Optional[Failing], examined: Examined, step: int, seen_in: str
    ) -> None:
        watch = self._watch
        if watch.told < watch.tellings:
            watch.told += 1
            tell_non_finite(watch.recorder, self._facts(flight, failing, examined, step, seen_in))

    def _facts(
        self, flight: FlightRecorder, failing: Optional[Failing], examined: Examined, step: int, seen_in: str
    ) -> NonFinite:
        watch = self._watch
        optimizer = watch.optimizer()
        before: Before = {"rate": told(rate_of(optimizer))}
        if failing is not None and watch.key is not None:
            before["losses"] = [[n, told(float(watch.loss_in(logs)))] for n, _, _, logs in flight.losses[-10:]]
            before["weights_finite"] = first_bad(failing.before.values) is None
        facts: NonFinite = {
            "step": step if failing is None else failing.step,
            "seen_at": step,
            "seen_in": seen_in if failing is None else failing.seen_in,
            "origin": examined.origin,
            "reproduced": examined.reproduced if failing is not None else None,
            "replay": examined.replay,
            "at": examined.at,
            "values": examined.values,
            "before": before,
            "half": None,
            "skipped_by_scaler": False,
        }
        if examined.input is not None:
            facts["input"] = examined.input
        return facts

    # -- going on

    def _may_act(self, flight: FlightRecorder, failing: Failing) -> bool:
        acts = self._watch.recorder.settings.get("policy") == "protect" and not self._watch.tf.distribute.has_strategy()
        values = zip(failing.after.values, flight.kinds)
        return acts and any(kind in (WEIGHTS, SLOT) and not is_finite(value) for value, kind in values)

    def _go_on(self, flight: FlightRecorder, failing: Failing, result: Any, step: int) -> Optional[Outcome]:
        """Without the calls that did it; those after them are made again."""
        watch, results = self._watch, [result]

        def run(given: Given) -> Any:
            results[0] = watch.run(given)
            return results[0]

        found: Optional[Failing] = failing
        while found is not None:
            if not self._bound.allows(found.step):
                text = f"non-finite numbers at step {found.step}, {self._bound.lately} times before that in 1,000 steps"
                tell_gave_up(watch.recorder, step, self._bound.count, text)
                found.before.put_back()
                return Outcome(result, NumbersGoneBad(f"holdfast: {text}. `holdfast why` says where they come from."))
            text = f"the call of step {found.step} undone, as if it had not been made"
            tell_went_on(watch.recorder, found.step, BATCH_SKIPPED, text, 0, self._bound.count)
            rest = flight.entries[found.place + 1 :]
            found.before.put_back()
            flight.begin(Snapshot(flight.variables, found.step))
            flight.entries += rest
            found = flight.replay(run, watch.loss_in) if rest else None
        flight.begin(Snapshot(flight.variables, step))
        return Outcome(results[0])


def rate_of(optimizer: Any) -> Optional[float]:
    rate = getattr(optimizer, "learning_rate", None)
    return None if rate is None else float(rate.numpy() if hasattr(rate, "numpy") else rate)
