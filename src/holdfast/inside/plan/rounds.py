"""The script's own loop, turn by turn, on batches whose size is decided here.

A round goes from the pull of a batch to the first pull after an update: so gradient accumulation and several optimizers are one
round, and what is measured is all that the script does with a batch. Trainers pull one batch ahead, so the first round of a
size may still train the one before: sizes only go up, and the most of all rounds counts.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Set

from .gauges import Gauges, held_by_children
from .loaded_data import loaded_bytes
from .memory_curve import Point
from .notes import Notes
from .sizes import BEYOND, FIRST_PART, Sizes


class Anatomy:
    """What a framework tells of a step beside its peak. Looked at in the first round of a size: looking takes memory."""

    def start_over(self) -> None:
        """Before another size: what the first step of a process makes is to be made again, where that can be had."""

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def facts(self) -> Dict[str, Any]:
        """Bytes of weights, gradients, optimizer, activations, data; `layers`: name -> bytes; `rows`, as a module saw them."""
        return {}


class Rounds:
    def __init__(self, notes: Notes, wanted: Dict[str, Any], gauges: Gauges, anatomy: Anatomy) -> None:
        self.notes, self.gauges, self.anatomy = notes, gauges, anatomy
        self._wanted = wanted
        self.resizes = bool(wanted.get("resize", True))
        self.sizes: Optional[Sizes] = None
        self.rows = 0  # of the batch that is handed out now
        self.updates = 0
        self.trained: Set[Any] = set()  # sources whose batches were trained on
        self.firsts: Dict[Any, Any] = {}
        self._pulled: Set[Any] = set()  # since the last update
        self._peaks: List[int] = []
        self._steps_s: List[float] = []
        self._began = self._first = 0.0

    # -- what the framework's part says

    def begins(self, own_rows: int) -> None:
        """The first batch is here. `own_rows` is 0 where it has no rows that can be counted."""
        wanted = self._wanted
        seconds, limit = float(wanted.get("seconds") or 10.0), wanted.get("limit_bytes")
        card = self.gauges.card.room_bytes() if self.gauges.card is not None else None
        beyond, part = int(wanted.get("beyond") or BEYOND), int(wanted.get("first_part") or FIRST_PART)
        self.sizes = Sizes(own_rows, wanted.get("batch"), wanted.get("room_bytes"), seconds, limit, card, beyond, part)
        self._first = time.perf_counter()
        self.rows = self.sizes.first() if self.resizes else own_rows
        self.gauges.begin()
        held = self.gauges.host_bytes()
        at_start = {"held_bytes": held, "data_bytes": loaded_bytes(), "card_bytes": card}
        self.notes.tell("begun", rows=own_rows, resizes=self.resizes, **at_start)
        self.sizes.fixed = held
        self._begin_size()

    def pulled(self, source: Any) -> None:
        self._pulled.add(source)

    def updated(self) -> None:
        self.updates += 1
        self.trained |= self._pulled
        self._pulled.clear()
        if self.sizes is not None and not self.trained and not self.resizes:
            self.turn()

    def turn(self) -> None:
        """Before a batch is handed out."""
        if self.sizes is None or not self.updates:
            return
        peak = self.gauges.host_bytes()
        took = time.perf_counter() - self._began
        if not self._peaks:
            self.anatomy.end()
        self._peaks.append(peak)
        self._steps_s.append(took)
        self.updates = 0
        if self.sizes.rounds_done(self._peaks, took):
            self._end_size()
        self._began = time.perf_counter()

    def scaled(self, rows: int) -> int:
        """For a source whose batches have another size than the first one's."""
        own = self.sizes.own if self.sizes is not None else 0
        return max(1, round(rows * self.rows / own)) if own else rows

    # -- sizes

    def _begin_size(self) -> None:
        self._peaks, self._steps_s, self.updates = [], [], 0
        self.notes.tell("probing", rows=self.rows)
        self.anatomy.begin()
        self._began = time.perf_counter()

    def _end_size(self) -> None:
        assert self.sizes is not None
        facts = self.anatomy.facts()
        rows = self.rows or int(facts.get("rows") or 0)
        # The first step traces, allocates an optimizer's state and is looked at: its time is not a step's.
        seconds = min(self._steps_s[1:] or self._steps_s)
        point = Point(rows, max(self._peaks), seconds, self.gauges.gpu_bytes())
        self.sizes.points.append(point)
        self.sizes.own = self.sizes.own or rows
        self.sizes.least_a_row = facts.get("activations", 0) / rows if rows else 0.0
        told = {**facts, **point._asdict(), "peaks": self._peaks, "workers_bytes": held_by_children()}
        self.notes.tell("point", **told)
        following = self.sizes.next(time.perf_counter() - self._first) if self.resizes and rows else None
        if following is None:
            self.notes.finish()
            return
        self.rows = following
        self.anatomy.start_over()
        self.gauges.begin()
        self._begin_size()

    def over(self) -> None:
        """The script would save, or end: nothing more is trained."""
        if self.sizes is not None and self.sizes.points:
            self.notes.finish()
