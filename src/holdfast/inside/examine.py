"""What grows in this process: two counts of what is alive, some steps apart, and who holds what came in between.

Runs at a step's boundary when the watcher asks, since memory grows and nobody knows why. A count is bounded in time
and keeps numbers, never objects.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Optional

from .roots import Held, held_containers
from .telemetry import Recorder, now

COUNT_S = 0.1  # later than this, tensors are not counted any more
STEPS_APART, LEAST_S = 20, 0.5
LONGEST_S, LEAST_STEPS = 2.0, 3
AT_ONCE = 32768  # objects between two looks at the clock
LEAST_LENGTH = 3  # of a container worth following
LEAST_BYTES = 16 << 10
NAMED = 4  # growers reported
ORDER = {"graph": 0, "trace": 0, "variable": 1, "data": 2}
COUNTED = (  # where each type is, once its framework is imported
    ("torch", "Tensor"),
    ("tensorflow.python.framework.ops", "EagerTensor"),
    ("tensorflow.python.ops.resource_variable_ops", "ResourceVariable"),
    ("tensorflow.python.framework.func_graph", "FuncGraph"),
)


class Census:
    """Containers by length, the rest by sort. Numbers only."""

    def __init__(self) -> None:
        self.lengths: dict[int, int] = {}
        self.sorts: dict[tuple[str, str], tuple[int, int]] = {}
        self.partial = False


class Examiner:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._first: Optional[Census] = None
        self._id: Any = None
        self._began_at = 0.0
        self._began_step = 0

    def begin(self, command: dict[str, Any]) -> str:
        if self._first is not None:
            return "under way already"
        self._first = first_count()
        self._id = command.get("id")
        self._began_at, self._began_step = now(), self._recorder.steps
        return "begun"

    def look(self, moment: float) -> None:
        """The second count, once enough steps lie between."""
        if self._first is None:
            return
        steps, seconds = self._recorder.steps - self._began_step, moment - self._began_at
        ripe = (steps >= STEPS_APART and seconds >= LEAST_S) or (steps >= LEAST_STEPS and seconds >= LONGEST_S)
        if not ripe:
            return
        first, self._first = self._first, None
        began = now()
        growing, partial = compare(first, steps)
        self._recorder.event(
            "examined", id=self._id, steps=steps, seconds=round(now() - began, 3), partial=partial, growing=growing
        )


def first_count() -> Census:
    deadline = now() + COUNT_S
    census = Census()
    for held in held_containers():
        census.lengths[id(held.container)] = len(held.container)
    _count_sorts(census, deadline)
    return census


def compare(first: Census, steps: int) -> tuple[list[dict[str, Any]], bool]:
    """What grew since, the most certain and the largest first; and whether time was short."""
    deadline = now() + COUNT_S
    least = max(3, int(0.3 * steps))
    found = [grower for held in held_containers() if (grower := _grown(held, first, least)) is not None]
    second = Census()
    _count_sorts(second, deadline)
    held_sorts = {grower["what"] for grower in found}
    for (kind, what), (count, size) in second.sorts.items():
        before = first.sorts.get((kind, what), (0, 0))
        if count - before[0] >= least and what not in held_sorts and not first.partial:
            found.append(_grower(kind, what, count - before[0], size - before[1], "", False))
    found = [grower for grower in found if grower["kind"] != "data" or grower["bytes"] >= LEAST_BYTES]
    found.sort(key=lambda grower: (ORDER[grower["kind"]], not grower["holder"], -grower["bytes"]))
    return found[:NAMED], first.partial or second.partial


def _count_sorts(census: Census, deadline: float) -> None:
    """Tensors, variables and traces among all objects: 44 to 57 ms for the 348 000 of an imported TensorFlow."""
    modules = [(sys.modules.get(module), name) for module, name in COUNTED]
    types = {getattr(module, name, None) for module, name in modules if module is not None}
    if not types or now() > deadline:
        census.partial = now() > deadline
        return
    objects = gc.get_objects()
    for start in range(0, len(objects), AT_ONCE):
        if now() > deadline:
            census.partial = True
            return
        for one in [one for one in objects[start : start + AT_ONCE] if type(one) in types]:
            kind, what, size = describe(one)
            count, total = census.sorts.get((kind, what), (0, 0))
            census.sorts[kind, what] = (count + 1, total + size)


def _grown(held: Held, first: Census, least: int) -> Optional[dict[str, Any]]:
    length = len(held.container)
    more = length - first.lengths.get(id(held.container), length)
    if more < least or length < LEAST_LENGTH:
        return None
    items = [_weigh(item) for item in _newest(held.container)]
    if not items:
        return None
    kind, what, _ = max(items, key=lambda item: (-ORDER[item[0]], item[2]))
    size = sum(item[2] for item in items) // len(items) * more
    return _grower(kind, what, more, size, held.name, held.of_the_data)


def _newest(container: Any) -> list[Any]:
    try:
        items = list(dict.values(container)) if issubclass(type(container), dict) else list(container)
    except RuntimeError:  # another thread changes it right now
        return []
    return items[-8:]


def _weigh(item: Any, depth: int = 3) -> tuple[str, str, int]:
    """An item of a container: what it mostly is, and what it and its parts take."""
    kind, what, size = describe(item)
    if depth and type(item) in (tuple, list, dict):
        parts = [_weigh(part, depth - 1) for part in list(item.values() if type(item) is dict else item)[:16]]
        if parts:
            telling = max(parts, key=lambda part: (-ORDER[part[0]], part[2]))
            return telling[0], telling[1], size + sum(part[2] for part in parts)
    return kind, what, size


def describe(one: Any) -> tuple[str, str, int]:
    """(kind, `tensors (64, 128) float32`, bytes), asked without touching a device."""
    kind = type(one)
    name, module = kind.__name__, kind.__module__
    if module.startswith("torch") and hasattr(one, "is_leaf"):
        what, size = _tensor("tensors", tuple(one.shape), one.dtype, one.element_size())
        kept = one.requires_grad and not one.is_leaf
        return ("graph", f"{what}, each with its graph", size) if kept else ("data", what, size)
    if name == "EagerTensor":
        return ("data", *_tensor("tensors", one.shape, one.dtype.name, one.dtype.size))
    if name in ("ResourceVariable", "Variable") and module.startswith(("tensorflow", "keras")):
        return ("variable", *_tensor("variables", one.shape, getattr(one.dtype, "name", one.dtype), 4))
    if name == "FuncGraph":
        return "trace", f"traces of {one.name}", 0
    if name == "ndarray":
        return "data", f"arrays {tuple(one.shape)} {one.dtype}", int(one.nbytes)
    return "data", f"{name} objects", sys.getsizeof(one, 64) if kind in PLAIN else 64


PLAIN = (str, bytes, bytearray, int, float, tuple, list, dict, set)


def _tensor(noun: str, shape: Any, dtype: Any, item_bytes: int) -> tuple[str, int]:
    sizes = tuple(int(length or 1) for length in shape)
    size = item_bytes
    for length in sizes:
        size *= length
    return f"{noun} {sizes} {str(dtype).replace('torch.', '')}", size


def _grower(kind: str, what: str, count: int, size: int, holder: str, of_the_data: bool) -> dict[str, Any]:
    return {"kind": kind, "what": what, "count": count, "bytes": size, "holder": holder, "of_the_data": of_the_data}
