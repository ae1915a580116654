"""A batch of tensors, cut along its first axis. Nests of tuples, lists and mappings; what is no tensor goes along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Iterator, Optional

from ..rescue_engine import CannotSplit


def named_tensors(batch: Any, torch: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """With the place of each: a key, or a number."""
    if isinstance(batch, torch.Tensor):
        yield name, batch
    elif isinstance(batch, Mapping):  # a tokenizer's batch is no dict
        for key, value in batch.items():
            yield from named_tensors(value, torch, f"{name}.{key}" if name else str(key))
    elif isinstance(batch, (tuple, list)):
        for number, value in enumerate(batch):
            yield from named_tensors(value, torch, f"{name}.{number}" if name else str(number))


def tensors_of(batch: Any, torch: Any) -> Iterator[Any]:
    for _, tensor in named_tensors(batch, torch):
        yield tensor


def rows_of(batch: Any, torch: Any) -> int:
    sizes = {int(tensor.shape[0]) for tensor in tensors_of(batch, torch) if tensor.dim()}
    if len(sizes) != 1:
        raise CannotSplit("its inputs do not share a first axis")
    return sizes.pop()


def tail_of(batch: Any, torch: Any) -> tuple[Any, ...]:
    return tuple(tuple(tensor.shape[1:]) for tensor in tensors_of(batch, torch))


def cut(batch: Any, begin: int, end: int, torch: Any, rows: Optional[int] = None) -> Any:
    """With `rows`, also what has one entry for each of them without being a tensor: texts, names, arrays."""
    if isinstance(batch, torch.Tensor):
        return batch[begin:end] if batch.dim() else batch
    if rows is not None and _is_by_row(batch, rows, torch):
        return batch[begin:end]
    if isinstance(batch, Mapping):
        return type(batch)({key: cut(value, begin, end, torch, rows) for key, value in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(cut(value, begin, end, torch, rows) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(cut(value, begin, end, torch, rows) for value in batch)
    return batch


def _is_by_row(batch: Any, rows: int, torch: Any) -> bool:
    if isinstance(batch, (list, tuple)):
        return len(batch) == rows and not hasattr(batch, "_fields") and next(tensors_of(batch, torch), None) is None
    shape = getattr(batch, "shape", None)
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == rows
