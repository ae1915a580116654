"""What a data set is known by: a few values of each large part of it, which are not saved with a checkpoint.

A script that is started again makes its data sets anew. One that was made otherwise (of the rows of another fold, by random
numbers without a seed) must be told from the one before. What changes while the process runs tells nothing: it is a cache,
or, where it is a row of numbers, an order that is drawn anew for each epoch, which is saved.
"""

from __future__ import annotations

import sys
import weakref
import zlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..never_raise import outcome
from ..script_state.data_position import LOOKED_AT, leaves
from ..script_state.object_graph import PLAIN
from . import seams
from .trainer_objects import is_small

ROWS = 16  # looked at, from all over it
PARTS, DEEPEST = 4, 4  # of a tuple of tensors; data sets made of data sets
CHANGED = -1

LARGEST_BYTES = 16 << 20  # of data that is saved, as it is another in each turn of a loop


class _Known:
    def __init__(self, dataset: Any) -> None:
        self.of = weakref.ref(dataset)
        self.first: Optional[Dict[str, int]] = None  # what was told of it first
        self.is_kept = False


_known: Dict[int, _Known] = {}  # by id: many data sets cannot be hashed


def _known_of(dataset: Any) -> Optional[_Known]:
    found = _known.get(id(dataset))
    return found if found is not None and found.of() is dataset else None


def _noted(dataset: Any) -> _Known:
    found = _known_of(dataset)
    if found is None:
        for number in [number for number, one in _known.items() if one.of() is None]:
            del _known[number]
        found = _known[id(dataset)] = _Known(dataset)
    return found


def likeness(dataset: Any) -> Dict[str, int]:
    found, error = outcome(_likeness, dataset)
    return found if error is None else {}


def same_data(one: Optional[Dict[str, int]], other: Optional[Dict[str, int]]) -> bool:
    return all((other or {}).get(name, value) == value for name, value in (one or {}).items())


def keep(dataset: Any) -> bool:
    """From now on with the state. False where it is too large for that, or no plain tensors."""
    owners = [owner for owner, _ in _datasets(dataset, "", 0)]
    sizes = [int(getattr(value, "nbytes", LARGEST_BYTES + 1)) for owner in owners for _, value in _parts(owner)]
    if not sizes or sum(sizes) > LARGEST_BYTES:
        return False
    for owner in owners:
        _noted(owner).is_kept = True
    return True


def kept() -> List[Any]:
    return [dataset for dataset in (one.of() for one in _known.values() if one.is_kept) if dataset is not None]


def is_kept(dataset: Any) -> bool:
    known = _known_of(dataset)
    return known is not None and known.is_kept


def is_redrawn(dataset: Any, name: str, value: Any) -> bool:
    """An attribute that holds an order, or other numbers, and has changed since the first epoch."""
    numbers = len(getattr(value, "shape", ())) == 1 or (isinstance(value, list) and PLAIN.issuperset(map(type, value)))
    known = _known_of(dataset) if numbers else None
    return known is not None and (known.first or {}).get(name) == CHANGED


def _likeness(dataset: Any) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for owner, prefix in _datasets(dataset, "", 0):
        here = {name: _of(value) for name, value in _parts(owner)}
        noted = _noted(owner)
        before = noted.first = dict(here) if noted.first is None else noted.first
        for name in [one for one in before if before[one] != here.get(one)]:
            before[name] = CHANGED
        found.update({prefix + name: value for name, value in here.items() if before.get(name) == value})
    return found


def _datasets(dataset: Any, prefix: str, depth: int) -> Iterator[Tuple[Any, str]]:
    yield dataset, prefix
    kind: Any = seams.loader_module().Dataset
    for name, value in vars(dataset).items() if depth < DEEPEST else ():
        for number, one in enumerate((value if isinstance(value, (list, tuple)) else [value])[:PARTS]):
            if isinstance(one, kind):
                yield from _datasets(one, f"{prefix}{name}.{number}.", depth + 1)


def _parts(dataset: Any) -> Iterator[Tuple[str, Any]]:
    """Those that are data, not state. Nothing else is asked for its rows: that may run code of a library or of the user's."""
    for name, value in vars(dataset).items():
        if _is_array(value) or (isinstance(value, (list, tuple)) and not is_small(value)):
            yield name, value
        elif isinstance(value, (list, tuple)):
            yield from ((f"{name}.{number}", one) for number, one in enumerate(value[:PARTS]) if _is_array(one))


def _is_array(value: Any) -> bool:
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    return isinstance(value, torch.Tensor) or (numpy is not None and isinstance(value, numpy.ndarray))


def _of(value: Any) -> int:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    length = len(value) if shape is None or len(shape) else 0
    known = zlib.crc32(repr((length, tuple(shape or ()), str(dtype))).encode())
    if getattr(dtype, "hasobject", False):
        return known
    step = max(1, length // ROWS)
    if shape is not None:
        return zlib.crc32(sample(value[::step]), known) if length else known
    rows = value[::step]
    if PLAIN.issuperset(map(type, rows)):
        return zlib.crc32(repr(rows).encode("utf-8", "replace"), known)
    for row in rows:
        known = zlib.crc32(sample(row), known)
    return known


def sample(batch: Any) -> bytes:
    """A few values from all over a batch. What lies on a GPU is not waited for."""
    found = b""
    for leaf in leaves(batch, []):
        if hasattr(leaf, "data_ptr"):
            if leaf.device.type == "cpu" and leaf.numel():
                flat = leaf.detach().reshape(-1)[:: max(1, leaf.numel() // LOOKED_AT)].contiguous()
                found += bytes(flat.view(_byte_type(flat)).numpy().tobytes())
        elif hasattr(leaf, "tobytes") and leaf.size:
            found += bytes(leaf.reshape(-1)[:: max(1, leaf.size // LOOKED_AT)].tobytes())
        elif type(leaf) in PLAIN:
            found += repr(leaf)[:LOOKED_AT].encode("utf-8", "replace")
    return found


def _byte_type(tensor: Any) -> Any:
    torch: Any = sys.modules["torch"]
    return torch.uint8 if tensor.dtype != torch.bool else torch.bool
