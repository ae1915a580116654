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
    return refilled(value, iter([mapped(part, change) for _, part in parts]))


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


def rows_of(batch: Any, torch: Any) -> int:
    sizes = {int(tensor.shape[0]) for tensor in tensors_of(batch, torch) if tensor.dim()}
    if len(sizes) != 1:
        raise CannotSplit("its inputs do not share a first axis")
    return sizes.pop()


def tail_of(batch: Any, torch: Any) -> Tuple[Any, ...]:
    """The shape of a row."""
    return tuple(tuple(tensor.shape[1:]) for tensor in tensors_of(batch, torch))


def _itself(_whole: Any, part: Any) -> Any:
    return part


def cut(
    value: Any,
    begin: int,
    end: int,
    torch: Any,
    rows: Optional[int] = None,
    change: Callable[[Any, Any], Any] = _itself,
) -> Any:
    """Rows of every tensor. With `rows`, of all that has one entry for each of them, and all else goes along: tensors,
    NumPy's arrays, texts. `change(tensor, its part)`."""
    if isinstance(value, torch.Tensor):
        is_cut = value.dim() and (rows is None or value.shape[0] == rows)
        return change(value, value[begin:end] if is_cut else value)
    if rows is not None and is_by_row(value, rows, torch):
        return value[begin:end]
    parts = opened(value)
    if parts is None:
        return value
    return refilled(value, iter([cut(part, begin, end, torch, rows, change) for _, part in parts]))


def is_by_row(value: Any, rows: int, torch: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) == rows and not hasattr(value, "_fields") and not tensors_of(value, torch)
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == rows


def refilled(value: Any, pieces: Any) -> Any:
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
