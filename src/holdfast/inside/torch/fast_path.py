"""Whether the loop is on the short cut of the usual step (`usual_step.py`), and what its steps add up to meanwhile."""

from __future__ import annotations

from threading import get_ident
from typing import Optional

from .loaders import Iteration
from .loop import Loop


class FastPath:
    __slots__ = (
        "began", "fed", "iteration", "last_step", "loop", "optimizer", "over_at", "thread", "updates", "wait_s",
    )  # fmt: skip

    def __init__(self) -> None:
        self.loop: Optional[Loop] = None
        self.iteration: Optional[Iteration] = None
        self.optimizer = 0  # by id: a reference would keep the user's model; 0 while nobody is on it
        self.thread = 0
        self.over_at = 0.0
        self.last_step = 0  # after which one is looked at again
        self.restart(0.0)

    def restart(self, moment: float) -> None:
        self.began = moment
        self.fed = False  # a batch has come since the last update
        self.updates = 0
        self.wait_s = 0.0

    def enter(self, loop: Loop, optimizer: int, moment: float, over_at: float) -> None:
        self.loop, self.iteration, self.optimizer, self.over_at = loop, loop.source, optimizer, over_at
        self.thread = get_ident()
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
