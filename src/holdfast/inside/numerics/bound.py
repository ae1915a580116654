"""How often a run may be helped over non-finite numbers before it is stopped with the verdict."""

from __future__ import annotations

from collections import deque
from typing import Deque

TIMES, WITHIN_STEPS = 5, 1000
IN_A_ROW = 5


class Bound:
    def __init__(self, times: int = TIMES, within_steps: int = WITHIN_STEPS) -> None:
        self._times, self._within = times, within_steps
        self._steps: Deque[int] = deque()
        self.count = 0  # in all of the run

    def allows(self, step: int) -> bool:
        """Whether it may go on at this step; if so, it is counted."""
        while self._steps and self._steps[0] <= step - self._within:
            self._steps.popleft()
        if len(self._steps) >= self._times or self._is_every_step(step):
            return False
        self._steps.append(step)
        self.count += 1
        return True

    def _is_every_step(self, step: int) -> bool:
        """Whatever is left out, the next step has it again."""
        return len(self._steps) >= IN_A_ROW and step - self._steps[-IN_A_ROW] <= IN_A_ROW

    @property
    def lately(self) -> int:
        return len(self._steps)


class NumbersGoneBad(RuntimeError):
    """Raised in the user's thread where the bound is reached: the script's `finally` blocks run, and it ends."""
