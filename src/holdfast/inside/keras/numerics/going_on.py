"""Going on after a step that made something non-finite: from the good state, without the rows, the batch or the rate that
did it. A bounded number of times, each of them disclosed."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ...fed_batches.imputing import fill_of, filled, in_words
from ...never_raise import guarded
from ...numerics.bound import Bound, NumbersGoneBad
from ...numerics.events import (
    BATCH_SKIPPED,
    CLIPPED,
    IMPUTED,
    INPUT,
    METRIC,
    RATE_LOWERED,
    ROWS_LEFT_OUT,
    SLOT,
    UPDATE,
    WEIGHTS,
    tell_gave_up,
    tell_went_on,
)
from ...numerics.plain_numbers import words
from ...tensorflow.numerics.bad_rows import bad_rows
from ...tensorflow.numerics.examination import Examined
from ...tensorflow.numerics.finiteness import array_of, is_finite, is_float, sum_of_squares
from ...tensorflow.numerics.flight_recorder import Assigned, Failing, FlightRecorder
from ...tensorflow.numerics.snapshot import Snapshot
from ...tensorflow.numerics.step_watch import Outcome
from .. import seams
from . import lower_rate
from .batch_rows import content_of, rows_in, without_rows
from .compiled_anew import compiled_anew
from .examination import as_tensors, leaves_of
from .incidents import Found, Incidents, batch_losses
from .state import CLIPS, optimizer_of
from .watch import ModelWatch

FACTORS = (0.5, 0.1, 0.01, 0.001)  # of the learning rate, tried on the batches that failed
NEAR = 1.5  # times the lowest mean loss between two checks
GROWN = 3.0  # times the loss before: it still diverges
CLIPPED_TO = 1.0  # the customary norm
TRIAL = 30  # steps that a rate must stand, on the batches at hand again and again
ROWS_TIMES = 100  # that bad rows are left out in 1,000 steps: all else is trained as it would have been
DIVERGED = 30.0  # times the lowest loss, before it broke
FEW = 0.25  # of a batch: so many rows are outliers, more are a training that diverges
AGAIN_WITHIN = 50  # steps after a skipped batch, the next one is no accident


class Way(NamedTuple):
    how: str
    text: str
    lost_steps: int


class GoingOn:
    """Of one model."""

    def __init__(self, watch: ModelWatch, incidents: Incidents) -> None:
        self._watch, self._incidents = watch, incidents
        self._bound, self._bound_of_rows = Bound(), Bound(ROWS_TIMES)
        self._skipped_at = -AGAIN_WITHIN
        self._logs: Any = None
        self._known: Set[int] = set()
        self._screened: Set[str] = set()  # names of parts of the batch in which rows were bad
        self._fills: Dict[str, Any] = {}  # by parts of the batch: what stands for values that are not finite
        self.sound: Optional[Snapshot] = None  # the newest state from which the loss was near its lowest
        self._lowest = math.inf

    # -- after a look that found nothing

    def checked(self, earlier: Optional[Snapshot], loss: Optional[float]) -> None:
        """All is finite; an earlier state, and the mean loss of the steps from there on."""
        if loss is None or not math.isfinite(loss):
            return
        self._lowest = min(self._lowest, loss)
        if earlier is not None and loss <= NEAR * abs(self._lowest) + self._lowest - abs(self._lowest):
            self.sound = earlier

    # -- an incident

    def __call__(self, watch: ModelWatch, _batch: Any, logs: Any, step: int, seen_in: str) -> Optional[Outcome]:
        flight = watch.flight
        assert flight is not None
        present = Snapshot(flight.variables, step)
        mended = False
        try:
            found = self._incidents.find(flight, logs, step, seen_in)
            if self._may_act(flight, found):
                ending = self._mend(flight, found, step)
                if ending is not None:
                    watch.sick = True
                    return Outcome(logs, ending)
                mended = self._logs is not None
        finally:
            if not mended:
                present.put_back()
        watch.sick = not mended
        if not mended:
            if seen_in == METRIC:
                flight.pass_over_metrics(present)
                watch.sick = False
            return None
        flight.begin(Snapshot(flight.variables, step))
        return Outcome(self._logs)

    def _may_act(self, flight: FlightRecorder, found: Found) -> bool:
        """Not where the script made no update with it: it handles such steps itself."""
        acts = self._watch.recorder.settings.get("policy") == "protect"
        if not acts or found.failing is None or not seams.on_one_device(self._watch.model_ref()):
            return False
        before, after = found.failing.before.values, found.failing.after.values
        trained = [pair for *pair, kind in zip(before, after, flight.kinds) if kind in (WEIGHTS, SLOT)]
        if any(not is_finite(new) for _, new in trained):
            return True
        return found.examined.reproduced and not found.examined.undefined and grew(trained)

    def _mend(self, flight: FlightRecorder, found: Found, step: int) -> Optional[Exception]:
        """Until all batches since the good state are gone through. An error where the run is to end."""
        self._logs = None
        while found.failing is not None:
            bound = self._bound_of_rows if found.examined.rows else self._bound
            if self._is_new(found) and not bound.allows(found.failing.step):
                way = self._with_imputed_values(flight, found.failing, found.examined)
                if way is None:
                    return self._given_up(found, bound, step)
            else:
                way = self._way(flight, found.failing, found.examined)
            if way is None:
                self._logs = None
                return None
            tell_went_on(self._watch.recorder, found.failing.step, way.how, way.text, way.lost_steps, bound.count)
            if not flight.entries:
                return None
            found = self._rest(flight, step)
        return None

    def _is_new(self, found: Found) -> bool:
        """Rows that were left out before come again in each epoch: that is the same trouble, not one more."""
        assert found.failing is not None
        return self._is_new_content(found.failing.batch, found.examined.rows)

    def _is_new_content(self, batch: Any, rows: Sequence[int]) -> bool:
        mark = content_of(batch, rows, self._watch.tf)
        known = mark in self._known
        self._known.add(mark)
        return not known

    def _rest(self, flight: FlightRecorder, step: int) -> Found:
        """The batches after the mended one."""
        failing = flight.replay(self._noting, self._incidents.loss_of)
        if failing is None:
            return Found(None, self._incidents.nothing)
        return self._incidents.found(flight, failing, step)

    def _noting(self, batch: Any) -> Any:
        logs = self._watch.run(batch)
        self._logs = logs
        return logs

    def _given_up(self, found: Found, bound: Bound, step: int) -> Exception:
        assert found.failing is not None
        text = f"non-finite numbers at step {found.failing.step}, {bound.lately} times before that in 1,000 steps"
        tell_gave_up(self._watch.recorder, step, bound.count, text)
        return NumbersGoneBad(f"holdfast: {text}. `holdfast why` says where they come from.")

    # -- the ways

    def _way(self, flight: FlightRecorder, failing: Failing, examined: Examined) -> Optional[Way]:
        """The first that leads on; the flight begins anew after it, with the batches that remain."""
        ways: List[Callable[[FlightRecorder, Failing, Examined], Optional[Way]]] = []
        if examined.leaf is not None:
            ways += [self._without_rows, self._with_imputed_values, self._without_batch]
        elif examined.rows and (examined.undefined or self._are_outliers(flight, failing, examined)):
            ways += [self._without_rows, self._without_batch, self._with_lower_rate]
        elif examined.undefined or examined.origin == UPDATE:
            ways += [self._without_batch, self._with_lower_rate]
        else:
            ways += [self._with_lower_rate, self._with_clipped_gradients, self._without_batch]
        if not examined.rows and failing.step - self._skipped_at < AGAIN_WITHIN:
            ways = [self._with_lower_rate, self._with_clipped_gradients, self._without_batch]
        for one in ways:
            way = one(flight, failing, examined)
            if way is not None:
                return way
        return None

    def _are_outliers(self, flight: FlightRecorder, failing: Failing, examined: Examined) -> bool:
        """A few rows overflowed, and not because everything grows: in a training that diverges some rows are always the first."""
        losses = [loss for _, loss in batch_losses(flight, self._watch.model_ref()) if isinstance(loss, (int, float))]
        known = [abs(loss) for loss in losses if math.isfinite(loss)]
        if examined.input is None and known and max(known) > DIVERGED * max(min([*known, abs(self._lowest)]), 1e-12):
            return False
        return len(examined.rows) <= FEW * rows_in(failing.batch, self._watch.tf)

    def _without_rows(self, flight: FlightRecorder, failing: Failing, examined: Examined) -> Optional[Way]:
        tf, bad = self._watch.tf, set(examined.rows)
        rows = rows_in(failing.batch, tf)
        rest = without_rows(failing.batch, bad, tf)
        if rest is None or not bad:
            return None
        failing.before.put_back()
        logs = self._noting(rest)
        state = Snapshot(flight.variables, failing.step)
        if flight.bad_in(state) is not None or not is_finite(self._incidents.loss_of(logs)):
            return None
        self._after(flight, failing, state)
        if examined.input is not None and examined.leaf is not None:
            self._screened.add(examined.input["name"])
            self._watch.screen = guarded(self._screen)
        return Way(ROWS_LEFT_OUT, f"{len(bad)} of {rows} rows of the batch of step {failing.step} left out", 0)

    def _with_imputed_values(self, flight: FlightRecorder, failing: Failing, examined: Examined) -> Optional[Way]:
        """Where rows cannot be left out: all of a batch are bad, or those of batch after batch."""
        bad, leaf = examined.input, examined.leaf
        if bad is None or leaf is None or examined.origin != INPUT or bad["name"] in self._fills:
            return None
        self._fills[bad["name"]] = fill_of(array_of(leaf))
        failing.before.put_back()
        logs = self._noting(self._filled(failing.batch))
        state = Snapshot(flight.variables, failing.step)
        if flight.bad_in(state) is not None or not is_finite(self._incidents.loss_of(logs)):
            del self._fills[bad["name"]]
            return None
        self._after(flight, failing, state)
        self._watch.screen = guarded(self._screen)
        return Way(IMPUTED, in_words(bad["name"], failing.step), 0)

    def _filled(self, batch: Any) -> Any:
        tf = self._watch.tf
        data = as_tensors(batch, tf)
        instead = {}
        for _, leaf in leaves_of(data, tf):
            if leaf.name in self._fills and is_float(leaf.tensor):
                array = filled(array_of(leaf.tensor), self._fills[leaf.name])
                instead[id(leaf.tensor)] = leaf.tensor if array is None else tf.cast(array, leaf.tensor.dtype)
        return tf.nest.map_structure(lambda one: instead.get(id(one), one), data)

    def _screen(self, batch: Any) -> Any:
        """The same rows come again in each epoch, and what they do may be hidden until the next look: they are left out, or filled in,
        beforehand. None where the batch is to be trained as it is."""
        if not self._fills or self._watch.recorder.settings.get("policy") != "protect":
            return self._without_screened(batch)
        batch = self._filled(batch)
        rest = self._without_screened(batch)
        return batch if rest is None else rest

    def _without_screened(self, batch: Any) -> Any:
        tf = self._watch.tf
        named = [leaf.tensor for _, leaf in leaves_of(batch, tf) if leaf.name in self._screened]
        bad = {int(row) for leaf in named if is_float(leaf) and not is_finite(leaf) for row in bad_rows(array_of(leaf))}
        rest = without_rows(batch, bad, tf) if bad else None
        if rest is None or self._watch.recorder.settings.get("policy") != "protect":
            return None
        step = self._watch.recorder.steps + 1
        if self._is_new_content(batch, sorted(bad)) and not self._bound_of_rows.allows(step):
            return None
        text = f"{len(bad)} of {rows_in(batch, tf)} rows of the batch of step {step} left out"
        tell_went_on(self._watch.recorder, step, ROWS_LEFT_OUT, text, 0, self._bound_of_rows.count)
        return rest

    def _without_batch(self, flight: FlightRecorder, failing: Failing, _examined: Examined) -> Optional[Way]:
        failing.before.put_back()
        self._skipped_at = failing.step
        self._after(flight, failing, failing.before)
        if self._logs is None:
            self._logs = self._watch.model_ref().get_metrics_result()
        return Way(BATCH_SKIPPED, f"the batch of step {failing.step} left out", 0)

    def _after(self, flight: FlightRecorder, failing: Failing, state: Snapshot) -> None:
        rest = flight.entries[failing.place + 1 :]
        state.step = failing.step
        flight.begin(state)
        flight.entries += rest

    def _with_lower_rate(self, flight: FlightRecorder, failing: Failing, _examined: Examined) -> Optional[Way]:
        good, sound, run = flight.good, self.sound, self._watch.run
        rate = lower_rate.of(self._watch) if good is not None and sound is not None else None
        if good is None or sound is None or rate is None:
            return None
        failing.before.put_back()
        entries = list(flight.entries)
        kept = [one for one in entries if not (type(one) is Assigned and one.variable is rate.variable)]
        now = rate.now()
        factor = self._best_factor(flight, kept, rate, now)
        if factor is not None and self._goes(flight, kept, rate, now * factor):
            del flight.entries[:]
            lost = good.step - sound.step
            text = rate.words(now, now * factor)
            if lost > 0:
                text += f", from the state {lost} steps before the last good one"
            return Way(RATE_LOWERED, text, max(0, lost))
        rate.undo(now)
        self._watch.run = run
        self._as_before(flight, good, entries)
        return None

    def _best_factor(
        self, flight: FlightRecorder, kept: List[Any], rate: lower_rate.Rate, now: float
    ) -> Optional[float]:
        """The first that does not diverge again may still only bounce: the next is taken where it comes further."""
        best: Optional[float] = None
        lowest = math.inf
        for factor in FACTORS:
            goes = self._goes(flight, self._trial(kept), rate, now * factor)
            reached = self._reached(flight) if goes else math.inf
            if best is not None and not reached < lowest:
                break
            if goes:
                best, lowest = factor, reached
        return best

    @staticmethod
    def _trial(kept: List[Any]) -> List[Any]:
        return kept * -(-TRIAL // max(1, len(kept)))

    def _reached(self, flight: FlightRecorder) -> float:
        losses = [loss for _, loss in batch_losses(flight, self._watch.model_ref()) if isinstance(loss, (int, float))]
        return sorted(losses)[len(losses) // 2] if losses else 0.0

    def _as_before(self, flight: FlightRecorder, good: Snapshot, entries: List[Any]) -> None:
        flight.begin(good)
        flight.entries += entries
        self._logs = None

    def _with_clipped_gradients(self, flight: FlightRecorder, failing: Failing, _examined: Examined) -> Optional[Way]:
        """With the script's own rate. The step is compiled anew: Keras reads what to clip while it traces."""
        watch, model, good, sound = self._watch, self._watch.model_ref(), flight.good, self.sound
        optimizer = optimizer_of(model)
        if good is None or sound is None or not hasattr(optimizer, "global_clipnorm"):
            return None
        if any(getattr(optimizer, name, None) for name in CLIPS):
            return None
        failing.before.put_back()
        entries, run = list(flight.entries), watch.run
        optimizer.global_clipnorm = CLIPPED_TO
        watch.run = compiled_anew(model, watch.tf)
        goes = False
        try:
            goes = self._goes(flight, self._trial(entries)) and self._goes(flight, entries)
        finally:
            if not goes:
                optimizer.global_clipnorm, watch.run = None, run
        if not goes:
            self._as_before(flight, good, entries)
            return None
        del flight.entries[:]
        lost = max(0, good.step - sound.step)
        return Way(CLIPPED, f"gradients clipped to a norm of {words(CLIPPED_TO)} from here on", lost)

    def _goes(
        self, flight: FlightRecorder, entries: List[Any], rate: Optional[lower_rate.Rate] = None, value: float = 0.0
    ) -> bool:
        """From the sound state, with this learning rate if one is given: whether the loss stays where it was."""
        assert self.sound is not None
        model, step = self._watch.model_ref(), self.sound.step
        self.sound.put_back()
        if rate is not None:
            rate.set(value)
        flight.begin(Snapshot(flight.variables, step))
        flight.entries += entries
        return flight.replay(self._noting, self._incidents.loss_of) is None and self._falls(flight, model)

    def _falls(self, flight: FlightRecorder, model: Any) -> bool:
        losses = [loss for _, loss in batch_losses(flight, model)]
        if not losses or not all(isinstance(one, (int, float)) for one in losses):
            return not losses
        lowest = self._lowest if math.isfinite(self._lowest) else 0.0
        return bool(losses[-1] <= GROWN * max(min(losses), lowest, 1e-12))


def grew(trained: List[Any]) -> bool:
    """Whether an update was made that is larger than the weights themselves: the numbers explode."""
    floats = [(array_of(old), array_of(new)) for old, new in trained if is_float(old)]
    moved = sum(sum_of_squares(new - old) or 0.0 for old, new in floats)
    return moved > sum(sum_of_squares(old) or 0.0 for old, _ in floats)
