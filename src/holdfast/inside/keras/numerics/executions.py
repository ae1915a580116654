"""Several steps at once (`steps_per_execution`): Keras pulls their batches inside one compiled loop, so none of them is at hand afterwards.

What can be known is looked at after each execution: the loss, and now and then the state. Where something is not finite, the state of
the last good look is put back, and from then on steps are run one by one, watched like any others: what comes again is traced then.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Any, Callable, Optional

from ...never_raise import guarded
from ...numerics.bound import Bound, NumbersGoneBad
from ...numerics.events import (
    LOSS,
    ROLLED_BACK,
    UNKNOWN,
    WEIGHTS,
    NonFinite,
    tell_gave_up,
    tell_non_finite,
    tell_went_on,
)
from ...numerics.plain_numbers import History, told
from ...telemetry import now
from ...tensorflow.numerics.finiteness import first_bad, quiet
from ...tensorflow.numerics.snapshot import Snapshot
from ...tensorflow.numerics.step_watch import Step
from .state import loss_key, rate_of
from .watch import ModelWatch

CHECK_EVERY_S = 0.5
CHECK_SHARE = 0.0015  # of the run's time


class Executions:
    """Of one model. `count`: how many steps an execution has at most."""

    def __init__(self, watch: ModelWatch, count: int, on_one_device: Callable[[], bool]) -> None:
        self._watch, self._count, self._on_one_device = watch, count, on_one_device
        watch.at_once = guarded(self.between)
        self._good: Optional[Snapshot] = None
        self._due_at, self._checked_at, self._check_s = 0.0, 0.0, 0.0
        self._losses = History()
        self._bound = Bound()
        self.one_by_one = False  # from now on
        self.ending: Optional[Exception] = None

    def around(self, step: Step) -> Step:
        """A step that is run alone."""
        return self._watch.aspect(step)

    def run(self, whole: Step, iterator: Any) -> Any:
        """Several at once."""
        self.before()
        logs = whole(iterator)
        self.after(logs)
        if self.ending is not None:
            raise self.ending
        return logs

    @guarded
    def before_alone(self) -> None:
        """The watch begins with the state as it is now: it must be a good one."""
        self.between(inf)
        self._good = None

    @guarded
    def before(self) -> None:
        """The first time, where all variables are there by then; and after steps that were run alone."""
        if self._watch.flight is not None:
            self._watch.flight, self._good = None, None  # what is held there ends with the last of those steps
        if self._good is None:
            self._keep()

    @guarded
    def after(self, logs: Any) -> None:
        """`logs`: Keras's means over the epoch."""
        watch = self._watch
        key = loss_key(logs)
        if watch.sick or key is None:
            return
        loss = float(logs[key])
        if not isfinite(loss):
            self._bad(LOSS)
            return
        self._losses.add(watch.recorder.steps, loss)
        if now() >= self._due_at:
            self._check()

    def between(self, share: float) -> None:
        """At the end of an epoch, or before steps that are run alone: a look, where it costs no more than so much of the time since
        the last one."""
        if self._good is not None and not self._watch.sick and self._check_s <= share * (now() - self._checked_at):
            self._check()

    def _keep(self) -> bool:
        found = self._watch.variables()
        if found is not None and self._watch.fits(found[0]):
            self._good = Snapshot(found[0], self._watch.recorder.steps)
        return self._good is not None

    def _check(self) -> None:
        began, earlier = now(), self._good
        if not self._keep() or self._good is None:
            return
        with quiet():
            bad = first_bad(self._good.values)
        if bad is not None:
            kinds = (self._watch.variables() or ([], [WEIGHTS]))[1]
            self._good = earlier
            self._bad(kinds[min(bad, len(kinds) - 1)])
        self._checked_at = now()
        self._check_s = self._checked_at - began
        self._due_at = began + max(CHECK_EVERY_S, self._check_s / CHECK_SHARE)

    def _bad(self, seen_in: str) -> None:
        watch, good = self._watch, self._good
        step = watch.recorder.steps
        since = good.step if good is not None and seen_in != LOSS else step - self._count
        first = max(1, since + 1)
        acts = watch.recorder.settings.get("policy") == "protect" and good is not None and self._on_one_device()
        after = "; steps are run one by one from here on, so that one that comes again is traced" if acts else ""
        facts: NonFinite = {
            "step": first, "seen_at": step, "seen_in": seen_in, "origin": UNKNOWN,
            "replay": f"{self._count} steps run at once (steps_per_execution): it began in one of the steps {first} to {step}, whose "
            f"batches are not at hand any more{after}",
            "before": {"losses": self._losses.told(), "rate": told(rate_of(watch.model_ref()))},
            "skipped_by_scaler": False,
        }  # fmt: skip
        tell_non_finite(watch.recorder, facts)
        if not acts or good is None:
            watch.sick = True
            return
        if not self._bound.allows(step):
            text = f"non-finite numbers at step {step}, {self._bound.lately} times before that in 1,000 steps"
            tell_gave_up(watch.recorder, step, self._bound.count, text)
            self.ending = NumbersGoneBad(f"holdfast: {text}. `holdfast why` says where they come from.")
            return
        lost = max(0, first - 1 - good.step)
        good.put_back()
        self.one_by_one = True
        text = f"the steps {first} to {step} left out, and the state after step {good.step} put back"
        tell_went_on(watch.recorder, step, ROLLED_BACK, text, lost, self._bound.count)
        self._good, self._due_at = None, 0.0
