"""How far an iterator of tf.data is, and bringing a new one there: by repeating.

What comes out of one is decided by its data set, by how many iterators were made of each part of it before (a shuffle counts
them, also those of other data sets that are made of it), by Python's random state at its first batch, and by how many
batches were taken. What is read again is compared with what came before.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any, Callable, Dict, List, NamedTuple

from .. import randomness
from ..script_state.data_position import ATTRIBUTE, LOOKED_AT, Position, leaves
from ..script_state.object_graph import PLAIN
from ..script_state.refusal import CannotPutBack, CannotTake
from . import random_state, seams

LIKE = "_holdfast_like"  # on a data set: what it is known by
MADE = "_holdfast_made"  # on a data set: how many iterators were made of it, or of one that is made of it
COMPARED = "batches"
SHUFFLES, CACHES, DRAWS = "ShuffleDataset", "CacheDataset", "RandomDataset"  # parts of names of classes


class Made(NamedTuple):
    counts: List[int]  # iterators that were made before, of each part that counts them
    like: List[int]  # what each part is known by: some of its values, its seeds


def parts_of(dataset: Any) -> List[Any]:
    """Each before those it is made of; the same one as often as it is used."""
    found = [dataset]
    for one in seams.inputs_of(dataset):
        found += parts_of(one)
    return found


def made_of(dataset: Any) -> Made:
    parts = parts_of(dataset)
    return Made([getattr(part, MADE, 0) for part in _counting(parts)], [_like(part) for part in parts])


def _counting(parts: List[Any]) -> List[Any]:
    """Those that give each iterator another order."""
    return [part for part in parts if SHUFFLES in type(part).__name__ or DRAWS in type(part).__name__]


def _like(part: Any) -> int:
    if not hasattr(part, LIKE):
        name = type(part).__name__.encode()
        setattr(part, LIKE, zlib.crc32(b"".join(sample(one) for one in seams.values_of(part)), zlib.crc32(name)))
    return int(getattr(part, LIKE))


def count_one(dataset: Any) -> None:
    for part in {id(part): part for part in parts_of(dataset)}.values():
        setattr(part, MADE, getattr(part, MADE, 0) + 1)


def check(dataset: Any, made: Made) -> None:
    """What is shuffled and then cached has the order of its first iterator, which another process does not make. A shuffle
    that is made in the turn has its first iterator in a new process, before earlier ones can be made of another below it."""
    parts = parts_of(dataset) if dataset is not None else []
    if 0 in made.counts and any(made.counts):
        raise CannotTake("the data is shuffled anew that was shuffled before")
    for number, part in enumerate(parts):
        if CACHES in type(part).__name__ and any(SHUFFLES in type(below).__name__ for below in parts[number + 1 :]):
            raise CannotTake("the data is shuffled before cache(), which keeps the first order")


def sample(batch: Any) -> bytes:
    """A few values from all over a batch. What lies on a GPU is not waited for."""
    found = b""
    for leaf in leaves(batch, []):
        if type(leaf) in PLAIN:
            found += repr(leaf)[:LOOKED_AT].encode("utf-8", "replace")
        elif hasattr(leaf, "__array__") and "GPU" not in getattr(leaf, "device", ""):
            array = _array(leaf)
            some = array.reshape(-1)[:: max(1, array.size // LOOKED_AT)]
            found += repr(some.tolist()).encode() if array.dtype.hasobject else bytes(some.tobytes())
    return found


def _array(leaf: Any) -> Any:
    numpy: Any = sys.modules["numpy"]
    if getattr(leaf.dtype, "name", "") == "string" and leaf.shape.rank:  # each would be an object of Python's
        leaf = leaf[:: max(1, int(leaf.shape[0]) // LOOKED_AT)]
    return numpy.asarray(leaf)


def bring_forward(
    iterator: Any, dataset: Any, record: Dict[str, Any], iterate: Callable[[Any], Any], pull: Callable[[Any], Any]
) -> bool:
    """`iterator`, which the script holds already, becomes one that has given so many batches.

    True where that has moved Python's or NumPy's random state: a part of the data comes from Python.
    """
    position: Position = getattr(iterator, ATTRIBUTE)
    wanted = record["made"].counts
    if record["made"].like != made_of(dataset).like:
        raise CannotPutBack("the data set that the loop goes over is another one than before")
    if position.made.counts != wanted:
        _make_earlier_ones(dataset, wanted, iterate)
        _become(iterator, iterate(dataset))
        count_one(dataset)
        position.count = position.likeness = 0
    if position.count == 0 and record["first"] is not None:
        random_state.restore(record["first"])
    before = randomness.capture()
    for taken in range(position.count, record["count"]):
        try:
            position.took(pull(iterator))
        except StopIteration:
            raise CannotPutBack(f"the data has {taken} batches, {record['count']} were taken") from None
    if position.likeness != record["likeness"]:
        raise CannotPutBack("the data came in another order when it was read again")
    position.count, position.made, position.first = record["count"], record["made"], record["first"]
    return not randomness.same(before, randomness.capture())


def _make_earlier_ones(dataset: Any, wanted: List[int], iterate: Callable[[Any], Any]) -> None:
    """Dropped at once: a shuffle counts them when they are made."""
    for part, count in zip(_counting(parts_of(dataset)), wanted):
        if getattr(part, MADE, 0) > count:
            raise CannotPutBack("more iterators were made of the data than before")
        while getattr(part, MADE, 0) < count:
            iterate(part)
            count_one(part)


def _become(iterator: Any, fresh: Any) -> None:
    if type(fresh) is not type(iterator):
        raise CannotPutBack("the data set gives another kind of iterator")
    ours = {name: value for name, value in vars(iterator).items() if name.startswith("_holdfast")}
    fresh.__dict__, iterator.__dict__ = iterator.__dict__, fresh.__dict__
    vars(iterator).update(ours)
