"""Variables and tensors of a checkpoint of a loop: held as they are, written by a thread, read again by their numbers."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Tuple

from ..keras.saved_state import write_values
from . import variable_values

FILE = "tensors.npz"
Entry = Tuple[List[int], str]  # shape, dtype


class ValueStore:
    """A tensor never changes, and a variable's value that is held is copied when it is written to."""

    def __init__(self) -> None:
        self.entries: List[Entry] = []
        self._values: List[Any] = []
        self._numbers: Dict[int, int] = {}
        self.bytes = 0

    def add_variable(self, variable: Any) -> int:
        return self._add(variable, variable_values.read)

    def add_tensor(self, tensor: Any) -> int:
        return self._add(tensor, _on_host)

    def _add(self, owner: Any, read: Any) -> int:
        number = self._numbers.get(id(owner))
        if number is None:
            shape, dtype = [int(size) for size in owner.shape], str(owner.dtype.name)
            number = self._numbers[id(owner)] = len(self.entries)
            self.entries.append((shape, dtype))
            self._values.append(read(owner))
            self.bytes += variable_values.nbytes_of(shape, dtype)
        return number

    def write(self, place: str) -> None:
        write_values(os.path.join(place, FILE), self._values)
        self._values = []


def _on_host(tensor: Any) -> Any:
    """What is held on a GPU would not be freed when the script lets go of it."""
    return tensor if "CPU" in tensor.device else tensor.numpy()


class SavedValues:
    def __init__(self, tf: Any, path: str, entries: List[Entry]) -> None:
        numpy: Any = sys.modules["numpy"]
        self._tf = tf
        self._entries = entries
        self._archive = numpy.load(os.path.join(path, FILE), allow_pickle=True)  # strings

    def put(self, number: int, variable: Any) -> None:
        variable_values.put(self._tf, variable, self._archive, str(number), *self._entries[number])

    def tensor(self, number: int) -> Any:
        _, dtype = self._entries[number]
        array = variable_values.as_it_was(self._tf, self._archive[str(number)], dtype)
        return self._tf.constant(array, dtype=dtype)
