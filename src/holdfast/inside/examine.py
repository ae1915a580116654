"""What grows in this process: two counts of what is alive, some steps apart, and who holds what came in between.

Runs at a step's boundary when the watcher asks, since memory grows and nobody knows why. A count is bounded in time
and keeps numbers, never objects.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from typing import Any, Optional

from .held_containers import Held, attributes_of, held_containers, used
from .keras import seams as keras_seams
from .telemetry import Recorder, now
from .tensorflow import seams as tf_seams
from .torch import seams as torch_seams

COUNT_S = 0.1  # of processor time: after it, tensors are not counted any more
STEPS_APART, LEAST_S = 20, 0.5
LONGEST_S, LEAST_STEPS = 2.0, 3
TRIES = 5  # each twice as long after the first count as the one before
EXPLAINED = 0.2  # of the growth
AT_ONCE = 32768  # objects between two looks at the clock
LEAST_LENGTH = 3  # of a container worth following
LEAST_BYTES = 16 << 10
NAMED = 4  # growers reported
ORDER = {"graph": 0, "trace": 0, "variable": 1, "data": 2}
COUNTED = (  # where each type is, once its framework is imported
    ("torch", "Tensor"),
    *tf_seams.COUNTED,
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
        self._last: Optional[Census] = None
        self._id: Any = None
        self._per_step = 0.0
        self._tried = 0
        self._began_at = 0.0
        self._began_step = 0

    def begin(self, command: dict[str, Any]) -> str:
        if self._first is not None:
            return "under way already"
        self._first, self._last, self._tried = first_count(), None, 0
        self._id, self._per_step = command.get("id"), float(command.get("per_step_bytes") or 0.0)
        self._began_at, self._began_step = now(), self._recorder.steps
        return "begun"

    def look(self, moment: float) -> None:
        """The second count, once enough steps lie between; further ones, ever later, while nothing explains the growth:
        what grows with each epoch or each model of a search shows only then."""
        if self._first is None:
            return
        steps, seconds, times = self._recorder.steps - self._began_step, moment - self._began_at, 2**self._tried
        ripe = (steps >= STEPS_APART * times and seconds >= LEAST_S) or (
            steps >= LEAST_STEPS * times and seconds >= LONGEST_S * times
        )
        if not ripe:
            return
        began = now()
        growing, second = compare(self._first, steps, self._last, self._per_step)
        partial = self._first.partial or second.partial
        about = {"partial": partial, "growing": growing, "collects": gc.isenabled()}
        self._recorder.event("examined", id=self._id, steps=steps, seconds=round(now() - began, 3), **about)
        self._tried += 1
        self._last = second
        if self._tried >= TRIES or any(self._explains(grower, steps) for grower in growing):
            self._first = self._last = None

    def _explains(self, grower: dict[str, Any], steps: int) -> bool:
        return grower["kind"] != "data" or bool(grower["bytes"] >= EXPLAINED * self._per_step * steps)


def first_count() -> Census:
    deadline = used() + COUNT_S
    census = Census()
    for held in held_containers():
        census.lengths[id(held.container)] = len(held.container)
    _count_sorts(census, deadline)
    return census


def compare(
    first: Census, steps: int, last: Optional[Census] = None, per_step: float = 0.0
) -> tuple[list[dict[str, Any]], Census]:
    """What grew since the first count, the most certain and the largest first; and the count it was found by.

    A few large things are told by their size, if they have also become more since the last count.
    """
    deadline = used() + COUNT_S
    least = max(3, int(0.3 * steps))
    large = EXPLAINED * per_step * steps if last is not None and per_step else float("inf")
    second = Census()
    found = []
    for held in held_containers():
        second.lengths[id(held.container)] = len(held.container)
        grower = _grown(held, first, last, least, large)
        if grower is not None:
            found.append(grower)
    _count_sorts(second, deadline)
    held_sorts = {grower["what"] for grower in found}
    for sort, (count, size) in second.sorts.items():
        kind, what = sort
        more, larger = count - first.sorts.get(sort, (0, 0))[0], size - first.sorts.get(sort, (0, 0))[1]
        goes_on = last is not None and count > last.sorts.get(sort, (0, 0))[0] > first.sorts.get(sort, (0, 0))[0]
        if (more >= least or (goes_on and larger >= large)) and what not in held_sorts and not first.partial:
            found.append(_grower(kind, what, more, larger, "", False))
    found = [grower for grower in found if grower["kind"] != "data" or grower["bytes"] >= LEAST_BYTES]
    found.sort(key=lambda grower: (ORDER[grower["kind"]], not grower["holder"], -grower["bytes"]))
    return found[:NAMED], second


def _count_sorts(census: Census, deadline: float) -> None:
    """Tensors, variables and traces among all objects: 44 to 57 ms for the 348 000 of an imported TensorFlow."""
    modules = [(sys.modules.get(module), name) for module, name in COUNTED]
    types = {getattr(module, name, None) for module, name in modules if module is not None}
    if not types or used() > deadline:
        census.partial = used() > deadline
        return
    objects = gc.get_objects()
    for start in range(0, len(objects), AT_ONCE):
        if used() > deadline:
            census.partial = True
            return
        for one in [one for one in objects[start : start + AT_ONCE] if type(one) in types]:
            kind, what, size = describe(one)
            count, total = census.sorts.get((kind, what), (0, 0))
            census.sorts[kind, what] = (count + 1, total + size)


def _grown(held: Held, first: Census, last: Optional[Census], least: int, large: float) -> Optional[dict[str, Any]]:
    name, length = id(held.container), len(held.container)
    more = length - first.lengths.get(name, length)
    goes_on = last is not None and length > last.lengths.get(name, length) > first.lengths.get(name, length)
    if (more < least and not goes_on) or length < LEAST_LENGTH:
        return None
    items = [_weigh(item) for item in _newest(held.container)]
    if not items:
        return None
    kind, what, _ = max(items, key=lambda item: (-ORDER[item[0]], item[2]))
    size = sum(item[2] for item in items) // len(items) * more
    if more < least and size < large:
        return None
    return {**_grower(kind, what, more, size, held.name, held.of_the_data), "bounded": _bounded(held.container)}


def _bounded(container: Any) -> bool:
    """It has an end of its own: what it pushes out is not kept."""
    return issubclass(type(container), deque) and deque.maxlen.__get__(container) is not None


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
    if (weights := _weights(one)) > LEAST_BYTES:
        return "data", f"models ({name})", weights
    return "data", f"{name} objects", sys.getsizeof(one, 64) if kind in PLAIN else 64


def _weights(one: Any, depth: int = 8) -> int:
    """What a model's own weights take; 0 for what is no model. By attributes as they lie: no code of the user's runs."""
    parts = attributes_of(one)
    named = [parts.get(name) for name in (torch_seams.PARAMETERS, *keras_seams.WEIGHTS)]
    if all(group is None for group in named):
        return 0
    size = 0
    for group in named:
        values = dict.values(group) if isinstance(group, dict) else list(group or ())
        size += sum(describe(value)[2] for value in values if value is not None)
    inner = parts.get(torch_seams.MODULES) or parts.get(keras_seams.LAYERS) or ()
    for layer in dict.values(inner) if isinstance(inner, dict) else list(inner):
        size += _weights(layer, depth - 1) if depth else 0
    return size


PLAIN = (str, bytes, bytearray, int, float, tuple, list, dict, set)


def _tensor(noun: str, shape: Any, dtype: Any, item_bytes: int) -> tuple[str, int]:
    sizes = tuple(int(length or 1) for length in shape)
    size = item_bytes
    for length in sizes:
        size *= length
    return f"{noun} {sizes} {str(dtype).replace('torch.', '')}", size


def _grower(kind: str, what: str, count: int, size: int, holder: str, of_the_data: bool) -> dict[str, Any]:
    return {"kind": kind, "what": what, "count": count, "bytes": size, "holder": holder, "of_the_data": of_the_data}
