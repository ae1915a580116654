"""Copies of what is plain: numbers, text, arrays, random generators, and containers of them. The rest is left out."""

from __future__ import annotations

import collections
import math
import random
import sys
import types
from typing import Any

from ..library_paths import is_library

PLAIN = (type(None), bool, int, float, complex, str, bytes)
LARGEST_BYTES = 64 << 20  # of one array that is not known to be replaced whole
MOST_ITEMS = 2_000_000
CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict)


class NotPlain(Exception):
    """Something that cannot be put back by value: a model, a file, a function."""


class Copier:
    """`share_arrays`: where arrays are replaced and never written into, as Keras's own callbacks do.

    `most_bytes`: of all it may copy.
    """

    def __init__(self, share_arrays: bool = False, most_bytes: float = math.inf) -> None:
        self._share = share_arrays
        self._most_bytes = most_bytes
        self._items = 0
        self._bytes = 0

    def copy(self, value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:
            if kind in (bytes, str):
                self._weigh(len(value))
            return value
        self._items += 1
        if self._items > MOST_ITEMS:
            raise NotPlain("too much of it")
        if kind in (list, tuple, set, frozenset):
            return kind([self.copy(item) for item in value])
        if kind is collections.deque:
            return collections.deque([self.copy(item) for item in value], value.maxlen)
        if kind in (dict, collections.OrderedDict):
            return kind([(self.copy(key), self.copy(item)) for key, item in value.items()])
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)) and _has_a_name(value):
            return value  # pickled as its name: Keras's monitors keep the comparison they use
        return self._of_numpy(value)

    def _weigh(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise NotPlain("too much of it")

    def _of_numpy(self, value: Any) -> Any:
        numpy: Any = sys.modules.get("numpy")
        if isinstance(value, random.Random):
            return Drawn("python", value.getstate())
        if numpy is not None:
            if isinstance(value, numpy.generic):
                return value
            if type(value) is numpy.ndarray and not value.dtype.hasobject:
                if self._share:
                    return value
                if value.nbytes <= LARGEST_BYTES:
                    self._weigh(value.nbytes)
                    return value.copy()
            if isinstance(value, numpy.random.Generator):
                return Drawn("generator", value.bit_generator.state)
            if isinstance(value, numpy.random.RandomState):
                return Drawn("legacy", value.get_state())
        raise NotPlain(type(value).__name__)


def _has_a_name(value: Any) -> bool:
    module = sys.modules.get(value.__module__ or "")
    return module is not None and module.__name__ != "__main__" and getattr(module, value.__name__, None) is value


class Drawn:
    """Where a random generator of the script's own had got to. Put back into the generator itself: it may be shared."""

    def __init__(self, kind: str, state: Any) -> None:
        self.kind = kind
        self.state = state

    def put_into(self, generator: Any) -> None:
        if self.kind == "python":
            generator.setstate(self.state)
        elif self.kind == "generator":
            generator.bit_generator.state = self.state
        else:
            generator.set_state(self.state)


def attributes_of(
    one: Any, leave: frozenset[str], share_arrays: bool = False, most_bytes: float = math.inf
) -> dict[str, Any]:
    """Those that are plain, each of at most so many bytes."""
    found = {}
    for name, value in list(getattr(one, "__dict__", {}).items()):
        if name not in leave:
            try:
                found[name] = Copier(share_arrays, most_bytes).copy(value)
            except NotPlain:
                continue
    return found


def attributes_of_classes(kind: type) -> list[dict[str, Any]]:
    """Numbers and containers that the user's own classes hold, which their methods may change."""
    return [
        {name: value for name, value in attributes_of(owner, frozenset()).items() if _may_change(name, value)}
        for owner in _own_classes(kind)
    ]


def put_back_classes(kind: type, saved: list[dict[str, Any]]) -> None:
    for owner, attributes in zip(_own_classes(kind), saved):
        for name, value in attributes.items():
            held: Any = vars(owner).get(name)
            if type(held) is not type(value) or type(value) not in CONTAINERS:
                setattr(owner, name, value)
            elif held is not None:
                held.clear()
                (held.update if isinstance(held, (dict, set)) else held.extend)(value)


def _own_classes(kind: type) -> list[type]:
    files = {owner: getattr(sys.modules.get(owner.__module__), "__file__", None) for owner in kind.__mro__}
    return [owner for owner, file in files.items() if owner is not object and not is_library(file or "")]


def _may_change(name: str, value: Any) -> bool:
    return type(value) in (int, float, *CONTAINERS) and not name.startswith("__")


def put_back(one: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        if isinstance(value, Drawn):
            value.put_into(getattr(one, name))
        else:
            setattr(one, name, value)
