"""What is kept of a PyTorch loop between the calls it is made of: one a thread, and what a step's end hands on."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from .deferred_reads import Read
from .loaders import Iteration


class Loop:
    """One thread's loop: it waits and computes for itself."""

    __slots__ = (
        "busy_s", "fresh", "got_batch", "loss", "mark", "nested", "opens", "own", "pending", "quiet", "round", "scaled",
        "shape", "sole", "source", "trains", "updating",
    )  # fmt: skip

    def __init__(self) -> None:
        self.trains = False
        self.updating = 0  # the outermost optimizer inside `step`, by id
        self.nested = 0
        self.opens = False  # that update begins a round
        self.round: Dict[int, Any] = {}  # weak references to the optimizers in it, by id
        self.sole: Callable[[], Any] = lambda: None  # the one optimizer of the round, where it is one
        self.got_batch = False  # since the last update
        self.fresh: List[Iteration] = []  # that gave a batch since the last round
        self.source: Optional[Iteration] = None  # asked last
        self.shape: Tuple[int, ...] = ()
        self.pending = 0  # usual steps that were not told yet
        self.quiet = 0  # batches since the last backward
        self.mark = 0.0  # since when it computes; 0: it does not
        self.busy_s = 0.0
        self.loss: Any = None
        self.own: Optional[Tuple[float, float]] = (
            None  # among ranks: when the last update was over, and its thread's time
        )
        self.scaled: Any = None  # what GradScaler.scale made last, and of which loss


class Loops(threading.local):
    def __init__(self) -> None:
        self.here = Loop()


class Round:
    __slots__ = ("busy_s", "epoch", "pending", "shape", "values", "wait_s")

    def __init__(
        self,
        pending: int,
        epoch: int,
        wait_s: float,
        busy_s: float,
        shape: Tuple[int, ...],
        values: Optional[Dict[str, Read]],
    ) -> None:
        self.pending, self.epoch, self.wait_s, self.busy_s = pending, epoch, wait_s, busy_s
        self.shape, self.values = shape, values
