"""Where a fit has got to in its data, and how to get there again without training.

Keras makes a tf.data iterator for each epoch, or one for all of them. What comes out of it is decided by the random
state at its making and at its first batch, by how many were made before it (a shuffle of tf.data counts them), and by
how many batches were taken. All that is recorded; resuming repeats it and takes the batches without training on them.
Arrays that are shuffled without a seed cannot be repeated: there the iterator itself is saved, with its permutation.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from typing import Any, Callable, Optional, Sequence

from .. import randomness
from . import seams
from .plain_copies import LARGEST_BYTES, attributes_of, put_back
from .saved_state import BackendState, Mismatch, SeedsOfModel

SMALL_BYTES = 1 << 20
OF_PYTHON = ("ArrayDataAdapter", "PyDatasetAdapter", "GeneratorDataAdapter")  # data whose order Python or NumPy draw
ROWS = 64  # of an array that are looked at to know it again
MADE = "_holdfast_made"  # on an epoch iterator: how many iterators it has made


class Position:
    """Of the training data of one fit. `record()` is what is saved; `go_to` is given one and gets there."""

    def __init__(self, state: BackendState, seeds: SeedsOfModel, or_stop: Callable[..., Any]) -> None:
        self._state = state
        self._seeds = seeds
        self._or_stop = or_stop  # what fails on the way back ends the run: it must not train at another place
        self._epoch_iterator: Any = None
        self._first_attributes: dict[str, int] = {}
        self.epoch = 0
        self.batch = 0  # batches of this epoch that were trained on
        self.pulled = 0  # batches taken from the iterator before the one in hand
        self._at_making: Optional[dict[str, Any]] = None
        self._goal: Optional[dict[str, Any]] = None
        self.python_data = False  # going forward moved Python's or NumPy's random state

    # -- recording

    def iterates(self, epoch_iterator: Any) -> None:
        """An epoch is about to begin; nothing has been taken from its data yet."""
        if epoch_iterator is not self._epoch_iterator:
            self._epoch_iterator = epoch_iterator
            self._first_attributes = {name: crc for name, (crc, _) in self._attributes().items()}
        if self._goal is not None:
            seams.put_walk(epoch_iterator, self._forward(epoch_iterator, self._goal))
            return
        self.batch = 0
        if self._will_be_fresh(epoch_iterator):
            self.pulled = 0
            self._at_making = self._making(epoch_iterator)

    def _will_be_fresh(self, iterator: Any) -> bool:
        goes_on = seams.has_iterator(iterator) and iterator.steps_per_epoch is not None
        return not goes_on or seams.steps_seen(iterator) == 0

    def _making(self, epoch_iterator: Any) -> dict[str, Any]:
        made = getattr(epoch_iterator, MADE, 0)
        waiting = seams.has_iterator(epoch_iterator) and epoch_iterator.steps_per_epoch is not None
        return {
            "random": self._state.random_state(),
            "made_before": made - 1 if waiting else made,
            "attributes": self._worth_keeping(),
            "seeds": self._seeds.numbers(),
            "loader": self._state.loader_state(epoch_iterator),
        }

    def first_pull(self, iterator: Any) -> None:
        """A new iterator, traced for and about to be asked for its first batch."""
        if self._goal is not None:
            goal, self._goal = self._goal, None
            self._or_stop(self._take, iterator, goal)
        elif self._at_making is not None and self.pulled == 0:
            self._at_making["at_first_pull"] = self._state.random_state()

    def trained(self, batches: int) -> None:
        self.batch += batches
        self.pulled += batches

    def needs_iterator_state(self) -> bool:
        return self._state.needs_iterator_state(self._adapter())

    def record(self) -> dict[str, Any]:
        iterator = self._epoch_iterator
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "pulled": self.pulled,
            "steps_seen": seams.steps_seen(iterator),
            "num_batches": seams.num_batches(iterator),
            "making": self._at_making,
        }

    def let_go(self) -> None:
        """Of the data. An iterator over an endless generator that lives until Python ends never lets Python end."""
        self._epoch_iterator = None

    def at_the_end(self) -> dict[str, Any]:
        """What a finished fit leaves behind in its data."""
        if self._epoch_iterator is None:
            return {"made": 0, "attributes": {}}
        return {"made": getattr(self._epoch_iterator, MADE, 0), "attributes": self._worth_keeping()}

    def _worth_keeping(self) -> dict[str, bytes]:
        """Attributes of a data set: those that changed, and the small ones, which an unseeded script makes anew."""
        return {
            name: packed
            for name, (crc, packed) in self._attributes().items()
            if len(packed) <= SMALL_BYTES or self._first_attributes.get(name) != crc
        }

    # -- getting there again

    def go_to(self, goal: dict[str, Any]) -> None:
        self._goal = goal

    def _forward(self, epoch_iterator: Any, goal: dict[str, Any]) -> Any:
        """Keras's own walk through the epoch, entered at the batch that is due."""
        self._or_stop(self._as_at_the_making, epoch_iterator, goal)
        walk = seams.walk(epoch_iterator)
        for _ in range(goal["batch"] // epoch_iterator.steps_per_execution):
            next(walk, None)
        for due in walk:
            if self._state.pulls_in_walk:
                self.first_pull(due[-1])
            seams.put_steps_seen(epoch_iterator, goal["steps_seen"])
            yield due
            break
        yield from walk

    def _as_at_the_making(self, epoch_iterator: Any, goal: dict[str, Any]) -> None:
        making = goal["making"]
        self._at_making = making
        self.epoch, self.batch, self.pulled = goal["epoch"], goal["batch"], goal["pulled"]
        if goal["num_batches"] is not None:
            seams.put_num_batches(epoch_iterator, goal["num_batches"])
        adapter = epoch_iterator.data_adapter
        if type(adapter).__name__ == "PyDatasetAdapter":
            put_back(adapter.py_dataset, {name: pickle.loads(packed) for name, packed in making["attributes"].items()})
            for name in making["attributes"]:
                self._first_attributes.pop(name, None)
        make_again(epoch_iterator, making["made_before"])
        self._seeds.put_numbers(making["seeds"])
        self._state.put_loader_state(epoch_iterator, making.get("loader"))
        self._state.put_random_state(making["random"])

    def _take(self, iterator: Any, goal: dict[str, Any]) -> None:
        saved = goal.get("iterator")
        if saved is not None:
            self._state.put_iterator_state(iterator, saved)
            return
        before = goal["making"].get("at_first_pull")
        if before is not None and not self._has_own_threads():
            self._state.put_random_state(before)
        else:
            before = self._state.random_state()
        for _ in range(goal["pulled"]):
            self._state.pull(iterator)
        moved = not randomness.same(before, self._state.random_state())
        self.python_data = moved and self._state.is_of_tf_data

    def _has_own_threads(self) -> bool:
        return getattr(self._adapter(), "enqueuer", None) is not None

    def _adapter(self) -> Any:
        return getattr(self._epoch_iterator, "data_adapter", None)

    def _attributes(self) -> dict[str, tuple[int, bytes]]:
        """Of a PyDataset of the user's: what its hooks between epochs may have shuffled; not the cache it fills."""
        adapter = self._adapter()
        if type(adapter).__name__ != "PyDatasetAdapter":
            return {}
        plain = attributes_of(adapter.py_dataset, seams.OF_A_PY_DATASET, most_bytes=LARGEST_BYTES)
        packed = {n: pickle.dumps(v, 4) for n, v in plain.items()}
        return {name: (zlib.crc32(data), data) for name, data in packed.items()}


def make_again(epoch_iterator: Any, count: int) -> None:
    """A shuffle of tf.data gives each iterator another order: the earlier ones are made again and dropped, 0.3 ms each."""
    if type(epoch_iterator.data_adapter).__name__ == "TFDatasetAdapter":
        for _ in range(count - getattr(epoch_iterator, MADE, 0)):
            seams.new_iterator(epoch_iterator)


def not_repeated(adapter: Any, kinds: Sequence[str]) -> str:
    """Why data cannot be taken again as it was; nothing where it comes in one of these ways, or is not known yet."""
    kind = type(adapter).__name__
    if adapter is None or kind in kinds:
        return ""
    return f"data that comes through Keras's {kind} cannot be taken again as it was on this backend yet"


# -- the same data?


def likeness(epoch_iterator: Any) -> dict[str, Any]:
    """What the data is known by, without taking anything from it."""
    adapter = epoch_iterator.data_adapter
    dataset = seams.dataset_of(epoch_iterator)
    kind = type(adapter).__name__
    content: Optional[int] = None
    if kind == "ArrayDataAdapter":
        content = _content(seams.arrays_of(adapter), rows=True)
    elif kind == "GeneratorDataAdapter":
        content = _content(seams.first_batches(adapter), rows=False)
    batches = epoch_iterator.num_batches
    return {
        "kind": kind,
        "batches": None if batches is None else int(batches),
        "spec": str(getattr(dataset, "element_spec", "")),
        "content": content,
    }


def check_same_data(here: dict[str, Any], saved: dict[str, Any]) -> None:
    said = {
        "kind": "the data comes another way: {} instead of {}",
        "batches": "an epoch has {} batches, {} when it was saved",
        "spec": "the batches are {}, they were {}",
        "content": "the data itself has changed",
    }
    for key, text in said.items():
        if here[key] != saved[key]:
            raise Mismatch(text.format(here[key], saved[key]))


def _content(data: Any, rows: bool) -> Optional[int]:
    numpy: Any = sys.modules["numpy"]
    check = 0
    for array in _flat(data):
        if not isinstance(array, numpy.ndarray) or array.dtype.hasobject:
            continue
        check = zlib.crc32(f"{array.shape} {array.dtype}".encode(), check)
        some = rows and array.ndim and len(array) > ROWS
        seen = array[numpy.linspace(0, len(array) - 1, ROWS).astype(int)] if some else array
        check = zlib.crc32(numpy.ascontiguousarray(seen).tobytes(), check)
    return check


def _flat(data: Any) -> list[Any]:
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, (list, tuple)):
        return [one for item in data for one in _flat(item)]
    return [data]
