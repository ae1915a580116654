"""How far each iterator over data is. Bringing a new one there is a framework's own affair: by repeating."""

from __future__ import annotations

import threading
import weakref
import zlib
from typing import Any, Callable, Dict, List, Optional, Tuple

from .frames import Stand
from .refusal import CannotTake

ATTRIBUTE = "_holdfast_position"  # on an iterator
SOURCE = "_holdfast_source"  # on an iterator, too: `for batch in DataLoader(…)` leaves nobody else who holds the loader
ALL_OF_THE_FIRST, THEN_EACH = 8, 8  # batches that are looked at
LOOKED_AT, LEAVES = 64, 4  # values of a tensor, tensors of a batch: for a batch to be known by


class Position:
    """Of one iterator."""

    __slots__ = (
        "checked", "count", "draws", "ended", "first", "iterator", "likeness", "made", "number", "sample", "source", "stand",
        "thread", "workers",
    )  # fmt: skip

    def __init__(self, number: int, source: Any, made: Any, checked: str, sample: Callable[[Any], bytes]) -> None:
        self.number = number  # in the order of making
        self.source = weakref.ref(source)
        self.iterator: Any = lambda: None
        self.made = made  # what its order depends on
        self.first: Optional[Dict[str, Any]] = None  # random state at the first batch
        self.stand: Optional[Stand] = None  # where the first batch was asked for
        self.thread = threading.get_ident()
        self.count = 0
        self.ended = False
        self.checked = checked  # by what it is known that the data came in the same order again
        self.sample = sample
        self.likeness = 0
        self.draws: Any = None  # where the data may draw the numbers that the training draws: who does is looked at

        self.workers: Any = None  # which persist, and whose random numbers go on from epoch to epoch

    def took(self, batch: Any) -> None:
        """Another order shows in any batch from there on: not each of them is looked at."""
        self.count += 1
        if self.count <= ALL_OF_THE_FIRST or self.count % THEN_EACH == 0:
            self.note(batch)

    def note(self, batch: Any) -> None:
        self.likeness = zlib.crc32(self.sample(batch), self.likeness)

    def record(self) -> Dict[str, Any]:
        kept = ("number", "made", "first", "count", "likeness", "stand", "checked")
        found = {name: getattr(self, name) for name in kept}
        return {**found, "workers": self.workers.taken() if self.workers is not None else None}


def leaves(batch: Any, found: List[Any]) -> List[Any]:
    """The first few tensors of a batch."""
    if len(found) < LEAVES:
        if isinstance(batch, dict):
            batch = list(batch.values())
        if isinstance(batch, (list, tuple)):
            for one in batch[:LEAVES]:
                leaves(one, found)
        else:
            found.append(batch)
    return found


def by_source(positions: List[Position], current: Optional[Position]) -> List[Tuple[Any, List[Position]]]:
    """Iterators under way beside the current one, by what they go over, in the order of their making."""
    found: List[Tuple[Any, List[Position]]] = []
    for one in positions:
        source, iterator = one.source(), one.iterator()
        if one is current or one.ended or source is None or iterator is None:
            continue
        if getattr(iterator, ATTRIBUTE, None) is not one:  # a persistent iterator that was begun anew
            continue
        for owner, group in found:
            if owner is source:
                group.append(one)
                break
        else:
            found.append((source, [one]))
    return found


def check_threads_and_others(positions: List[Position], position: Optional[Position]) -> None:
    """Raises CannotTake where data is asked for by another thread, or by several iterators at one place."""
    if threading.current_thread() is not threading.main_thread():
        raise CannotTake("another thread than the main one asks for data")
    for other in positions:
        if other.ended or other.iterator() is None:
            continue
        if other.thread != threading.get_ident():
            raise CannotTake("another thread reads the data ahead")
        beside = position is not None and other is not position and other.stand == position.stand
        if beside and position is not None and other.count > position.count:
            raise CannotTake("several loaders are asked at once")
