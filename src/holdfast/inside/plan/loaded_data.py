"""Bytes of arrays and tensors that the script holds as data: in the variables of the functions under way, and in data sets.

Parameters of a model are none of it. What lies deeper than this looks (a library's own cache, say) counts as the framework's.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Dict, Optional

DEPTH = 4
MOST_ITEMS = 1000
DATA_SET = ("dataset", "datasets", "tensors", "data", "arrays", "inputs", "targets", "x", "y", "_dataset", "_inputs")


def loaded_bytes(frame: Optional[FrameType] = None) -> int:
    frame = sys._getframe(1) if frame is None else frame
    found: Dict[int, int] = {}
    while frame is not None:
        for value in list(frame.f_locals.values()):
            _add(value, found, DEPTH)
        frame = frame.f_back
    return sum(found.values())


def _add(value: Any, found: Dict[int, int], depth: int) -> None:
    kind = type(value).__name__
    if kind == "ndarray":
        base = value
        while type(getattr(base, "base", None)).__name__ == "ndarray":
            base = base.base
        found[base.__array_interface__["data"][0]] = int(base.nbytes)
    elif kind == "Tensor" and hasattr(value, "untyped_storage"):
        if not value.requires_grad and value.layout is sys.modules["torch"].strided:
            found[value.untyped_storage().data_ptr()] = int(value.untyped_storage().nbytes())
    elif depth and isinstance(value, (list, tuple)):
        for part in value[:MOST_ITEMS]:
            _add(part, found, depth - 1)
    elif depth and isinstance(value, dict):
        for part in list(value.values())[:MOST_ITEMS]:
            _add(part, found, depth - 1)
    elif depth:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict) and not isinstance(value, type):
            for name in DATA_SET:
                if name in attributes:
                    _add(attributes[name], found, depth - 1)
