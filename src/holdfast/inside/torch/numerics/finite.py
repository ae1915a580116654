"""What is not finite in tensors: whether, how much of it, in which rows and columns. Never moves a tensor to a device."""

from __future__ import annotations

import math
from typing import Any, Iterable, List, Optional, Tuple

from ...numerics.events import ROWS, BadInput
from ...numerics.plain_numbers import kind_of

WHOLE = 1 << 22  # entries that are looked at in one piece: what is made beside them stays small


def is_float(torch: Any, value: Any) -> bool:
    """A dense tensor with numbers that can be non-finite, and with data: no fake or meta tensor."""
    return (
        isinstance(value, torch.Tensor)
        and (value.is_floating_point() or value.is_complex())
        and value.layout is torch.strided
        and value.device.type != "meta"
        and value.numel() > 0
    )


def all_finite(torch: Any, tensor: Any) -> bool:
    """Waits for the device: only once there is suspicion, or on the CPU."""
    with torch.no_grad():
        flat = tensor.detach()
        if flat.numel() <= WHOLE or not flat.is_contiguous():
            return bool(torch.isfinite(flat).all())
        return all(bool(torch.isfinite(part).all()) for part in flat.reshape(-1).split(WHOLE))


def first_bad(torch: Any, named: Iterable[Tuple[str, Any]]) -> List[str]:
    """Names of those that hold something non-finite."""
    return [name for name, value in named if is_float(torch, value) and not all_finite(torch, value)]


def largest_finite(torch: Any, tensors: Iterable[Any]) -> Optional[float]:
    with torch.no_grad():
        sizes = (torch.nan_to_num(one.detach().abs(), 0.0, 0.0).amax() for one in tensors)
        return max(map(float, sizes), default=None)


def what(torch: Any, tensor: Any) -> Optional[str]:
    with torch.no_grad():
        value = tensor.detach()
        return kind_of(
            int(torch.isnan(value).sum()),
            int((value == math.inf).sum()) if not value.is_complex() else 0,
            int((value == -math.inf).sum()) if not value.is_complex() else 0,
        )


def bad_input(torch: Any, name: str, tensor: Any) -> BadInput:
    """Which rows and columns of it, by the first and the last axis."""
    with torch.no_grad():
        bad = ~torch.isfinite(tensor.detach())
        found: BadInput = {"name": name, "what": what(torch, tensor) or "NaN"}
        if bad.dim() == 0:
            return {**found, "rows": [], "row_count": 1}
        rows = bad_rows(torch, tensor)
        found["rows"], found["row_count"] = rows[:ROWS], len(rows)
        if bad.dim() >= 2:
            columns = bad.reshape(-1, bad.shape[-1]).any(0).nonzero().reshape(-1).tolist()
            found["columns"] = columns[:ROWS]
    return found


def bad_rows(torch: Any, tensor: Any) -> List[int]:
    bad = ~torch.isfinite(tensor.detach())
    return bad.reshape(bad.shape[0], -1).any(1).nonzero().reshape(-1).tolist()  # type: ignore[no-any-return]


def extremes(torch: Any, tensor: Any) -> Optional[Tuple[float, float]]:
    """The least and the largest finite number; None where there is none."""
    with torch.no_grad():
        value = tensor.detach()
        if value.is_complex():
            value = value.abs()
        value = value[torch.isfinite(value)].double() if value.is_floating_point() else value.double()
        return None if not value.numel() else (float(value.min()), float(value.max()))
