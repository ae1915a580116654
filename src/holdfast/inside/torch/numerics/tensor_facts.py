"""What a tensor holds, in plain numbers. Waits for the device: for a first batch only."""

from __future__ import annotations

from typing import Any, Optional

from ...numerics.events import DISTINCT, Columns, Values
from ...numerics.plain_numbers import told

ROWS = 4096  # that are looked at
ENTRIES = 1 << 20  # in double precision, with what is made of them on the way, 40 MiB beside what training holds


def values_of(torch: Any, tensor: Any, name: Optional[str] = None) -> Values:
    with torch.no_grad():
        found: Values = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).replace("torch.", "")}
        if name is not None:
            found["name"] = name
        few = some_of(tensor.detach())
        if not few.numel() or few.is_complex():
            return found
        number = few.double()
        finite = torch.isfinite(number)
        found["non_finite"] = int(few.numel() - int(finite.sum()))
        number = number[finite]
        if number.numel():
            found["min"], found["max"] = told(number.min()), told(number.max())
            found["mean"] = told(number.mean())
            found["std"] = told(number.std(unbiased=False))
            found["integers"] = bool((number == number.round()).all())
    return found


def some_of(tensor: Any) -> Any:
    if tensor.dim() and tensor.shape[0] > ROWS:
        tensor = tensor[:ROWS]
    if tensor.numel() > ENTRIES:
        tensor = tensor[: max(1, ENTRIES // max(1, tensor[0].numel()))]
    return tensor


def input_facts(torch: Any, tensor: Any, name: str) -> Values:
    found = values_of(torch, tensor, name)
    if tensor.dim() == 2 and tensor.is_floating_point() and tensor.shape[1] > 1:
        with torch.no_grad():
            number = torch.nan_to_num(some_of(tensor.detach()).double())
            scales = number.abs().amax(0)
            columns: Columns = {
                "count": int(tensor.shape[1]),
                "largest_scale": told(scales.max()),
                "largest_at": int(scales.argmax()),
                "smallest_scale": told(scales.min()),
                "constant": int((number.amax(0) == number.amin(0)).sum()),
            }
        found["columns"] = columns
    return found


def target_facts(torch: Any, tensor: Any) -> Values:
    found = values_of(torch, tensor)
    with torch.no_grad():
        few = some_of(tensor.detach())
        found["distinct"] = min(DISTINCT, int(torch.unique(few).numel()))
        if few.dim() == 2 and few.shape[1] > 1:
            ones, zeros = few == 1, few == 0
            found["one_hot"] = bool((ones | zeros).all()) and bool((ones.sum(1) == 1).all())
            found["repeated"] = bool((few == few[:, :1]).all())
        else:
            found["one_hot"] = False
    return found


def output_facts(torch: Any, tensor: Any) -> Values:
    found = values_of(torch, tensor)
    with torch.no_grad():
        few = some_of(tensor.detach()).double()
        if few.numel():
            found["between_0_and_1"] = bool(((few >= 0) & (few <= 1)).all())
            if few.dim() >= 2 and few.shape[1] > 1:
                found["rows_sum_to_1"] = bool(((few.sum(1) - 1).abs() < 1e-3).all())
            else:
                found["rows_sum_to_1"] = False
    return found
