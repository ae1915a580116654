"""Nests of tensors as modules take and return them: tuples, lists, mappings, dataclasses, Hugging Face's outputs."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, Callable, List, Optional, Tuple

from ..rescue_engine import CannotSplit

LEFT_OUT = ("past_key_values",)  # a cache for generating: no use in training, and not made of rows
PLAIN = (type(None), bool, int, float, str, bytes)


def opened(value: Any) -> Optional[List[Tuple[Any, Any]]]:
    """(key, part) of each part; None where there is nothing to open."""
    if isinstance(value, PLAIN):
        return None
    if isinstance(value, (tuple, list)):
        return list(enumerate(value))
    if isinstance(value, (dict, Mapping)):  # the first is quicker to tell
        return list(value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return None


def named_leaves(value: Any, name: str = "") -> List[Tuple[str, Any]]:
    parts = opened(value)
    if parts is None:
        return [(name, value)]
    return [leaf for key, part in parts for leaf in named_leaves(part, f"{name}.{key}" if name else str(key))]


def tensors_of(value: Any, torch: Any) -> List[Any]:
    found: List[Any] = []
    _gather(value, torch.Tensor, found)
    return found


def _gather(value: Any, kind: Any, found: List[Any]) -> None:
    """Of every call that is noted: the usual kinds first."""
    if isinstance(value, kind):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _gather(part, kind, found)
    elif isinstance(value, dict):
        for part in value.values():
            _gather(part, kind, found)
    else:
        for _, part in opened(value) or ():
            _gather(part, kind, found)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A nest of the same kind, each leaf changed."""
    parts = opened(value)
    if parts is None:
        return change(value)
    return _refilled(value, iter([mapped(part, change) for _, part in parts]))


def without_caches(value: Any) -> Tuple[Any, bool]:
    """And whether there was one."""
    if not isinstance(value, Mapping) or not any(value.get(name) is not None for name in LEFT_OUT):
        return value, False
    kept = {str(key): None if key in LEFT_OUT else part for key, part in value.items()}
    return (type(value)(**kept) if dataclasses.is_dataclass(value) else kept), True


def form_of(value: Any, torch: Any) -> Any:
    """What must be the same for every part of a batch: everything but what is in the tensors. Or CannotSplit."""
    if isinstance(value, torch.Tensor):
        if value.is_sparse or not (value.dim() or value.is_floating_point()):
            raise CannotSplit("it returns a tensor that has no rows")
        return ("tensor", value.dim(), value.dtype)
    parts = opened(value)
    if parts is not None:
        return (type(value).__name__, *((key, form_of(part, torch)) for key, part in parts))
    if isinstance(value, PLAIN):
        return value
    raise CannotSplit(f"it returns a {type(value).__name__}, which cannot be put together from parts")


def cut(value: Any, begin: int, end: int, rows: int, torch: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Inputs: what has one entry for each row is cut, all else goes along. `change(tensor, its part)`."""

    def leaf(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            return change(part, part[begin:end] if part.dim() and part.shape[0] == rows else part)
        shape = getattr(part, "shape", None)  # NumPy's
        by_row = isinstance(shape, tuple) and len(shape) > 0 and shape[0] == rows
        return part[begin:end] if by_row else part

    if _texts_by_row(value, rows, torch):
        return value[begin:end]
    parts = opened(value)
    if parts is None:
        return leaf(value)
    pieces = iter([cut(part, begin, end, rows, torch, change) for _, part in parts])
    return _refilled(value, pieces)


def _texts_by_row(value: Any, rows: int, torch: Any) -> bool:
    plain = isinstance(value, (list, tuple)) and not hasattr(value, "_fields") and len(value) == rows
    return plain and not tensors_of(value, torch) and all(isinstance(part, PLAIN) for part in value)


def _refilled(value: Any, pieces: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*pieces) if hasattr(value, "_fields") else tuple(pieces)
    if isinstance(value, list):
        return list(pieces)
    keys = [key for key, _ in opened(value) or ()]
    if isinstance(value, Mapping) and dataclasses.is_dataclass(value):
        return type(value)(**{str(key): piece for key, piece in zip(keys, pieces)})
    new = copy.copy(value)
    for key, piece in zip(keys, pieces):
        if isinstance(value, Mapping):
            new[key] = piece
        else:
            object.__setattr__(new, key, piece)
    return new
