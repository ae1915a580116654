"""A gradient in few numbers: some of its entries and its sum, for comparing one with another. Copies of it may not fit."""

from __future__ import annotations

from typing import Any, Iterable

ENTRIES = 4096  # of each parameter
AT_ONCE = 1 << 20  # entries that are added up: in float64 they are a copy


def sampled(torch: Any, gradients: Iterable[tuple[Any, Any]]) -> Any:
    """One vector, of parameters and their gradients; about as long as the gradient itself would be, times the square root
    of two at most."""
    taken = []
    for parameter, gradient in gradients:
        stride = max(1, parameter.numel() // ENTRIES)
        count = -(-parameter.numel() // stride)
        if gradient is None or not count:
            taken.append(torch.zeros(count + 1, dtype=torch.float64))
            continue
        of_kind = _of_dense if gradient.layout is torch.strided else _of_sparse
        entries, values = of_kind(torch, gradient.detach(), stride, count)
        total = sum(float(part.sum(dtype=torch.float64)) for part in values.split(AT_ONCE))
        taken.append(entries.double().cpu() * stride**0.5)
        taken.append(torch.tensor([total / parameter.numel() ** 0.5], dtype=torch.float64))
    return torch.cat(taken) if taken else torch.zeros(0, dtype=torch.float64)


def _of_dense(_torch: Any, gradient: Any, stride: int, _count: int) -> tuple[Any, Any]:
    flat = gradient.reshape(-1)
    return flat[::stride], flat


def _of_sparse(torch: Any, gradient: Any, stride: int, count: int) -> tuple[Any, Any]:
    """Of rows of a table: an embedding's."""
    if gradient.layout is not torch.sparse_coo or gradient.sparse_dim() != 1:
        return _of_dense(torch, gradient.to_dense(), stride, count)
    gradient = gradient.coalesce()
    values = gradient.values().reshape(gradient.indices().shape[1], -1)
    columns = torch.arange(values.shape[1], device=values.device)
    places = gradient.indices()[0][:, None] * values.shape[1] + columns
    hit = places % stride == 0
    entries = torch.zeros(count, dtype=torch.float64, device=values.device)
    entries[places[hit] // stride] = values[hit].double()
    return entries, values.reshape(-1)
