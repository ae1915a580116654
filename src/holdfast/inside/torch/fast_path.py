"""The short cut of the usual step: one loader, one optimizer, no value due.

In a loop of 1 ms steps all code of ours is out of the processor's caches each time, so what counts is how many lines of
memory a step touches: telling everything each time took 22 µs a step, the short cut takes 8 (0.95 ms steps, 2 cores).
It lasts until the next look, a twentieth of a second at most; whatever else the loop does ends it at once.
"""

from __future__ import annotations

from typing import Optional

from .loaders import Iteration
from .loop import Loop


class FastPath:
    __slots__ = ("began", "fed", "iteration", "loop", "optimizer", "over_at", "updates", "wait_s")

    def __init__(self) -> None:
        self.loop: Optional[Loop] = None
        self.iteration: Optional[Iteration] = None
        self.optimizer = 0  # by id: a reference would keep the user's model; 0 while nobody is on it
        self.over_at = 0.0
        self.restart(0.0)

    def restart(self, moment: float) -> None:
        self.began = moment
        self.fed = False  # a batch has come since the last update
        self.updates = 0
        self.wait_s = 0.0

    def enter(self, loop: Loop, optimizer: int, moment: float, over_at: float) -> None:
        self.loop, self.iteration, self.optimizer, self.over_at = loop, loop.source, optimizer, over_at
        self.restart(moment)

    def settle(self, moment: float) -> None:
        """Puts the loop where it would be had each step been told by itself."""
        here = self.loop
        if here is None:
            return
        if self.iteration is not None:
            self.iteration.wait_s += self.wait_s
        here.busy_s += moment - self.began - self.wait_s
        here.mark = moment
        here.pending += self.updates
        here.got_batch = self.fed
        if self.fed and self.iteration is not None:
            here.fresh[:] = [self.iteration]
        self.restart(moment)

    def leave(self) -> None:
        self.loop, self.iteration, self.optimizer = None, None, 0
