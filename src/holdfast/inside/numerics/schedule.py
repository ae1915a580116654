"""When a step is looked at more closely: often at first, then by the clock, and never beyond a share of the run's time."""

from __future__ import annotations

from typing import Callable

from ..telemetry import now

SHARE = 0.003  # of the run's time, for all that is sampled…
ALLOWANCE_S = 0.6  # …and this much once: a run of seconds has to be judged by its samples, too
EVERY_S = 0.5
OF_THE_RUN = 0.005  # from one look to the next: 0.5 s after 100 s, 18 s after an hour
COUNTED = 1000  # steps of which some are looked at by their number
JUMP = 5.0  # times the learning rate: what comes after it is looked at like a beginning…
BEGUN_AGAIN = 3  # …so often, for schedules that go up and down…
AFTER = 50  # …and not within a warm-up, where many steps are looked at anyway


class Schedule:
    """After steps 1, 2, 3, 5, 8, 13, 21 … while the allowance lasts. Then at most every `every_s`, and later by as much as the looks
    have cost, and less often as the run gets older: what is told of it stays bounded. The first look is not counted: it prepares
    the others."""

    __slots__ = (
        "_again",
        "_began",
        "_clock",
        "_every_s",
        "_from",
        "_is_first",
        "_left_s",
        "_next_at",
        "_previous",
        "_share",
        "next_step",
    )

    def __init__(
        self,
        every_s: float = EVERY_S,
        share: float = SHARE,
        allowance_s: float = ALLOWANCE_S,
        clock: Callable[[], float] = now,
    ) -> None:
        self._every_s, self._share, self._left_s, self._clock = every_s, share, allowance_s, clock
        self._previous, self.next_step, self._from = 1, 1, 0
        self._again = BEGUN_AGAIN
        self._began = clock()
        self._next_at = 0.0
        self._is_first = True

    def is_due(self, step: int) -> bool:
        """`step` counts from 1. A comparison while steps are counted, one look at the clock later."""
        if self.next_step:
            return step >= self.next_step
        return self._clock() >= self._next_at

    def looked(self, step: int, cost_s: float) -> None:
        """The look of this step is over and took so long."""
        if self._is_first:
            self._is_first = False
        else:
            self._left_s -= cost_s
        moment = self._clock()
        wait_s = self._every_s if self._left_s > 0.0 else max(self._every_s, cost_s / self._share)
        self._next_at = moment + max(wait_s, OF_THE_RUN * (moment - self._began))
        if not self.next_step:
            return
        while self.next_step <= step:
            gap = self.next_step - self._from
            self._previous, self.next_step = gap, self.next_step + self._previous
        if self.next_step - self._from > COUNTED or self._left_s <= 0.0:
            self.next_step = 0  # by the clock from here on

    def begin_again(self, step: int) -> None:
        """Densely from the next step on, while the allowance lasts: something has changed."""
        if self._again and self._left_s > 0.0 and step >= self._from + AFTER:
            self._again -= 1
            self._previous, self.next_step, self._from = 1, step + 1, step
