"""Something non-finite was seen: the step it came from, its origin, and what is told of it."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from ...never_raise import outcome
from ...numerics.events import METRIC, UNKNOWN, WEIGHTS, BadInput, Before, NonFinite, tell_non_finite
from ...numerics.plain_numbers import told
from ...numerics.room import is_ample
from ...tensorflow.numerics.bad_rows import far_out
from ...tensorflow.numerics.examination import Examined, bad_leaf, of_batch, unknown
from ...tensorflow.numerics.finiteness import array_of, is_float
from ...tensorflow.numerics.flight_recorder import Failing, FlightRecorder
from ...tensorflow.numerics.snapshot import Snapshot
from .. import seams
from .data_source import searched
from .examination import examined as examined_step
from .examination import leaves_of
from .state import loss_key, loss_tracker, rate_of
from .watch import ModelWatch

LOSSES = 10
LOST = 1e-6  # of a sum in float32: what is added to it is rounded away


class Found(NamedTuple):
    failing: Optional[Failing]
    examined: Examined


class Incidents:
    """Of one model: finds and tells. `memory`: what is known from health samples."""

    nothing = unknown("", False)

    def __init__(self, watch: ModelWatch, epoch_iterator: Callable[[], Any], memory: Callable[[], Before]) -> None:
        self._watch, self._epoch_iterator, self._memory = watch, epoch_iterator, memory

    def find(self, flight: FlightRecorder, logs: Any, step: int, seen_in: str) -> Found:
        """Leaves the state somewhere on the way: the caller puts back what it wants to go on from."""
        failing = None
        if flight.good is not None and flight.whole:
            failing = flight.replay(self._watch.run, self.loss_of)
        return self.found(flight, failing, step, seen_in)

    def found(self, flight: FlightRecorder, failing: Optional[Failing], step: int, seen_in: str = UNKNOWN) -> Found:
        watch = self._watch
        examined = self._examined(flight, failing)
        facts = self._facts(flight, failing, examined, step, seen_in)
        if watch.told < watch.tellings:
            watch.told += 1
            tell_non_finite(watch.recorder, facts)
        return Found(failing, examined)

    def loss_of(self, logs: Any) -> Any:
        return logs.get(self._watch.key) if isinstance(logs, dict) else None

    def _examined(self, flight: FlightRecorder, failing: Optional[Failing]) -> Examined:
        watch = self._watch
        if failing is None:
            text = "more had happened since the last good state than was kept"
            if flight.whole and flight.good is not None:
                text = "the steps since the last good state were repeated, and all stayed finite"
            return unknown(text, False)
        if not is_ample(watch.recorder):
            bad = bad_leaf([leaf for _, leaf in leaves_of(failing.batch, watch.tf)])
            text = "the step was repeated; there is no memory to run it operation by operation"
            return of_batch(bad) if bad is not None else unknown(text, True)
        failing.before.put_back()
        done, error = outcome(examined_step, watch.model_ref(), failing.batch, watch.tf)
        if error is not None:
            text = f"the step was repeated; operation by operation it ended in {type(error).__name__}: {error}"
            return unknown(text, True)
        examined: Examined = done
        if examined.input is not None and examined.leaf is not None:
            searched(examined.input, array_of(examined.leaf), self._epoch_iterator())
        elif examined.rows and not examined.undefined:
            examined = examined._replace(input=self._too_large(failing.batch, examined.rows))
        if not examined.reproduced:  # the compiled step does it
            text = "the compiled step does it again from the state before it; run operation by operation it does not"
            return examined._replace(reproduced=True, replay=text)
        return examined

    def _too_large(self, batch: Any, rows: Sequence[int]) -> Optional[BadInput]:
        """What these rows were given, where that alone sets them apart from the rest of the batch."""
        for part, leaf in leaves_of(batch, self._watch.tf):
            array = array_of(leaf.tensor) if part == "x" and is_float(leaf.tensor) else None
            bad = None if array is None else far_out(leaf.name, array, rows)
            if bad is not None:
                searched(bad, array, self._epoch_iterator(), finite=True)
                return bad
        return None

    # -- what is told

    def _facts(
        self, flight: FlightRecorder, failing: Optional[Failing], examined: Examined, step: int, seen_in: str
    ) -> NonFinite:
        facts: NonFinite = {
            "step": step if failing is None else failing.step,
            "seen_at": step,
            "seen_in": seen_in if failing is None else failing.seen_in,
            "origin": examined.origin,
            "reproduced": examined.reproduced if failing is not None else None,
            "replay": examined.replay,
            "at": examined.at,
            "values": examined.values,
            "before": self._before(flight, failing),
            "half": half_of(self._watch.model_ref()),
            "skipped_by_scaler": False,
        }
        if examined.input is not None:
            facts["input"] = examined.input
        if failing is not None and failing.seen_in == METRIC:
            facts["had_numbers"] = had_numbers(self._watch.model_ref(), flight, failing)
        return facts

    def _before(self, flight: FlightRecorder, failing: Optional[Failing]) -> Before:
        model = self._watch.model_ref()
        before: Before = {**self._memory()}
        if failing is None:
            return before
        failing.before.put_back()
        rate = rate_of(model)
        latest = batch_losses(flight, model)
        earlier = [one for one in before.get("losses", []) if not latest or one[0] < latest[0][0]]
        before["losses"] = [*earlier, *latest][-LOSSES:]
        before["weights_finite"] = flight.bad_in(failing.before) is None
        before["largest_weight"] = told(largest(flight, failing.before))
        before["rate"] = told(rate)
        fed = [leaf.tensor for part, leaf in leaves_of(failing.batch, self._watch.tf) if part == "x"]
        before["largest_input"] = told(largest_finite([array_of(one) for one in fed if is_float(one)]))
        scale = getattr(getattr(model, "optimizer", None), "dynamic_scale", None)
        if scale is not None:
            before["loss_scale"] = told(float(scale.numpy()))
        return before


def batch_losses(flight: FlightRecorder, model: Any) -> List[Any]:
    """Of the steps of the latest replay: Keras tells a mean over the epoch, and a batch's share is in its difference."""
    tracker = loss_tracker(model)
    places = [flight.place(seams.value_of(one)) for one in (tracker.total, tracker.count)] if tracker else []
    found = []
    for step, before, after, logs in flight.losses[-LOSSES:]:
        loss = between(before, after, *places) if places else None
        if loss is None:  # a step of the user's own tells what it likes
            loss = logs.get(loss_key(logs)) if isinstance(logs, dict) else None
        if loss is not None:
            found.append([step, told(float(loss))])
    return found


def between(before: Snapshot, after: Snapshot, total: int, count: int) -> Optional[float]:
    def at(state: Snapshot, place: int) -> float:
        return float(array_of(state.values[place]))

    rows = at(after, count) - at(before, count)
    if rows > 0:
        added = at(after, total) - at(before, total)
        return None if 0.0 < abs(added) < LOST * abs(at(after, total)) else added / rows
    return at(after, total) / at(after, count) if at(after, count) else None


def mean_loss(model: Any, flight: FlightRecorder, earlier: Optional[Snapshot]) -> Optional[float]:
    """Over the steps between an earlier state and the good one."""
    tracker = loss_tracker(model)
    if tracker is None or flight.good is None or earlier is None:
        return None
    places = [flight.place(seams.value_of(one)) for one in (tracker.total, tracker.count)]
    return between(earlier, flight.good, *places)


def had_numbers(model: Any, flight: FlightRecorder, failing: Failing) -> bool:
    """Whether the metric that broke had counted something in this epoch: then it is not undefined by design."""
    number = flight.first_bad(failing.after)
    every = [one for metric in model.metrics for one in (metric, *getattr(metric, "metrics", ()))]
    owned = [[id(seams.value_of(one)) for one in metric.variables] for metric in every]
    holders = [ids for ids in owned if number is not None and id(flight.variables[number]) in ids]
    own = min(holders, key=len, default=[])
    before = (array_of(v) for one, v in zip(flight.variables, failing.before.values) if id(one) in own and is_float(v))
    return any(bool(one.any()) for one in before)


def largest(flight: FlightRecorder, state: Snapshot) -> float:
    weights = [array_of(v) for v, kind in zip(state.values, flight.kinds) if kind == WEIGHTS and is_float(v)]
    return max((float(max(one.max(), -one.min())) for one in weights if one.size), default=0.0)


def largest_finite(arrays: List[Any]) -> float:
    numpy: Any = sys.modules["numpy"]
    sizes = (numpy.abs(one[numpy.isfinite(one)]) for one in arrays)
    return max((float(one.max()) for one in sizes if one.size), default=0.0)


def half_of(model: Any) -> Optional[str]:
    """The half precision that layers compute in."""
    for layer in seams.layers_of(model):
        dtype = str(getattr(layer, "compute_dtype", ""))
        if dtype in ("float16", "bfloat16"):
            return dtype
    return None
