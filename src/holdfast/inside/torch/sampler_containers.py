"""Lists, dicts and arrays that a sampler of the user's own changes while it draws (how many of each class it has given, say).

Its order is found by repeating, so they must be as they were when its iterator was made. They are put back in place:
what holds one of them, or a part of one, holds it afterwards.
"""

from __future__ import annotations

import collections
import pickle
from typing import Any, Optional

from ..script_state.object_graph import PLAIN

LARGEST = 1 << 18  # entries and bytes of arrays, together: it is copied once an epoch; larger ones seldom change
CONTAINERS = (
    list,
    tuple,
    dict,
    set,
    collections.deque,
    collections.defaultdict,
    collections.OrderedDict,
    collections.Counter,
)


def taken(torch: Any, value: Any) -> Optional[bytes]:
    """None where it is no such container, holds something else, or is large."""
    if type(value) not in CONTAINERS and not _is_array(torch, value):
        return None
    return pickle.dumps(value, protocol=4) if _size(torch, value, 0) <= LARGEST else None


def _size(torch: Any, value: Any, so_far: int) -> int:
    """More than LARGEST where it cannot be taken."""
    if _is_array(torch, value):
        return so_far + int(value.nbytes) // 8
    if type(value) not in CONTAINERS or so_far + len(value) > LARGEST:
        return LARGEST + 1
    so_far += len(value)
    if isinstance(value, dict):
        if not PLAIN.issuperset(map(type, value)):
            return LARGEST + 1
        value = value.values()
    if not PLAIN.issuperset(map(type, value)):
        for one in value:
            if type(one) not in PLAIN:
                so_far = _size(torch, one, so_far)
            if so_far > LARGEST:
                break
    return so_far


def _is_array(torch: Any, value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(type(value) is torch.Tensor and value.device.type == "cpu" and not value.requires_grad)
    return type(value).__name__ == "ndarray" and not value.dtype.hasobject


def put_back(torch: Any, held: Any, saved: Any) -> Any:
    """What the sampler is to hold: where it can be, what it holds now, filled anew."""
    if type(held) is not type(saved):
        return saved
    if _is_array(torch, held):
        is_alike = held.shape == saved.shape and held.dtype == saved.dtype
        if not is_alike or not getattr(getattr(held, "flags", None), "writeable", True):
            return saved
        held[...] = saved
    elif isinstance(held, dict):
        parts = {key: put_back(torch, held.get(key), one) for key, one in saved.items()}
        held.clear()
        held.update(parts)
    elif isinstance(held, set):
        held.clear()
        held.update(saved)
    elif isinstance(held, (list, collections.deque)):
        parts_of_it = [put_back(torch, *pair) for pair in zip(held, saved)] + list(saved)[len(held) :]
        held.clear()
        held.extend(parts_of_it)
    else:
        return saved
    return held
