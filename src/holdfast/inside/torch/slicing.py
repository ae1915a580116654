"""A batch of tensors, cut along its first axis. Nests of tuples, lists and dictionaries; what is no tensor goes along."""

from __future__ import annotations

from typing import Any, Iterator


class CannotSlice(Exception):
    """In words for the record."""


def tensors_of(batch: Any, torch: Any) -> Iterator[Any]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, dict):
        for value in batch.values():
            yield from tensors_of(value, torch)
    elif isinstance(batch, (tuple, list)):
        for value in batch:
            yield from tensors_of(value, torch)


def rows_of(batch: Any, torch: Any) -> int:
    sizes = {int(tensor.shape[0]) for tensor in tensors_of(batch, torch) if tensor.dim()}
    if len(sizes) != 1:
        raise CannotSlice("its inputs do not share a first axis")
    return sizes.pop()


def tail_of(batch: Any, torch: Any) -> tuple[Any, ...]:
    return tuple(tuple(tensor.shape[1:]) for tensor in tensors_of(batch, torch))


def cut(batch: Any, begin: int, end: int, torch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch[begin:end] if batch.dim() else batch
    if isinstance(batch, dict):
        return type(batch)({key: cut(value, begin, end, torch) for key, value in batch.items()})
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(cut(value, begin, end, torch) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(cut(value, begin, end, torch) for value in batch)
    return batch
