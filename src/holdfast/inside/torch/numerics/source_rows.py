"""Where a bad row of a batch lies in the data it was taken from, and whether it is bad there, too.

Looked for among the tensors and arrays that the loader's data set and the script's variables hold: those whose rows have
the shape of the batch's. Nothing of the script's is called, so no file is read and nothing is drawn anew.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ...numerics.events import ROWS, BadInput
from .finite import bad_rows, is_float

LARGEST = 1 << 28  # entries of a source that is searched
DEPTH = 3  # data sets within data sets


def add_sources(torch: Any, bad: BadInput, value: Any, loader: Any, variables: Iterable[Any]) -> None:
    """Fills in `indices` and `source_clean`, as far as they can be known."""
    if value is None or not value.dim() or not bad.get("rows"):
        return
    rows = [value[row].detach() for row in bad["rows"][:ROWS]]
    clean: Optional[bool] = None
    for source, indices in _sources(torch, getattr(loader, "dataset", None), variables, value, is_float):
        spoiled = bad_rows(torch, source)
        found = [_same(torch, source, spoiled, row) for row in rows]
        if any(index is not None for index in found):
            known = [index for index in found if index is not None]
            bad["indices"] = [int(indices.get(index, index)) for index in known]
            bad["source_clean"] = False
            return
        if not spoiled and _is_source_of(torch, source, value):
            clean = True
    if clean:
        bad["source_clean"] = True


def places_of(torch: Any, data: Any, value: Any, rows: List[int]) -> List[int]:
    """Of these rows of a batch's labels: which rows of the data set have the same ones, where each has a place of its own."""
    found: List[int] = []
    for source, indices in _sources(torch, data, (), value, _is_whole):
        for row in rows:
            same = (source == value[row]).reshape(source.shape[0], -1).all(1).nonzero().reshape(-1).tolist()
            found += [int(indices.get(index, index)) for index in same if len(same) == 1]
        if found:
            break
    return found


def _is_whole(torch: Any, value: Any) -> bool:
    return not value.is_floating_point() and not value.is_complex() and value.layout is torch.strided


def _same(torch: Any, source: Any, among: List[int], row: Any) -> Optional[int]:
    for index in among:
        other = source[index].to(row.device, row.dtype)
        if bool(((other == row) | (torch.isnan(other) & torch.isnan(row))).all()):
            return index
    return None


def _is_source_of(torch: Any, source: Any, value: Any) -> bool:
    """The first good row of the batch is one of its rows: what spoiled the bad ones came in between."""
    spoiled = set(bad_rows(torch, value))
    good = next((row for row in range(value.shape[0]) if row not in spoiled), None)
    if good is None:
        return False
    row = value[good].detach().to(source.device, source.dtype)
    return bool((source == row).reshape(source.shape[0], -1).all(1).any())


def _sources(
    torch: Any, data: Any, variables: Iterable[Any], value: Any, is_wanted: Callable[[Any, Any], bool]
) -> Iterator[Tuple[Any, Dict[int, int]]]:
    """Each with what its rows are called in the outermost data set, where that differs."""
    seen = set()
    for holder, names in [*_data_sets(data), *((each, {}) for each in variables)]:
        for found in _arrays(torch, holder):
            fits = found.dim() == value.dim() and found.shape[1:] == value.shape[1:] and found.shape[0] > value.shape[0]
            if fits and found.numel() <= LARGEST and is_wanted(torch, found) and found.data_ptr() not in seen:
                seen.add(found.data_ptr())
                yield found, names


def _data_sets(data: Any) -> Iterator[Tuple[Any, Dict[int, int]]]:
    names: Dict[int, int] = {}
    for _ in range(DEPTH):
        if data is None:
            return
        yield data, names
        inner, indices = getattr(data, "dataset", None), getattr(data, "indices", None)
        names = {int(of): number for number, of in enumerate(indices)} if indices is not None and not names else {}
        data = inner


def _arrays(torch: Any, holder: Any) -> Iterator[Any]:
    numpy: Any = sys.modules.get("numpy")
    parts: List[Any] = [holder]
    if isinstance(holder, ModuleType):  # may warn of what is asked of it
        return
    if not isinstance(holder, torch.Tensor) and hasattr(holder, "__dict__"):
        for part in list(vars(holder).values()):
            parts += part if isinstance(part, (tuple, list)) and len(part) <= ROWS else [part]
    for part in parts:
        if isinstance(part, torch.Tensor):
            yield part.detach()
        elif (
            numpy is not None and isinstance(part, numpy.ndarray) and part.dtype.kind in "fiu" and part.flags.writeable
        ):
            yield torch.from_numpy(part)
