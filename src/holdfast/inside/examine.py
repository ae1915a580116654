"""What grows in this process: two counts of what is alive, some steps apart, and who holds what came in between.

Runs at a step's boundary when the watcher asks, since memory grows and nobody knows why. A count is bounded in time
and keeps numbers, never objects.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Optional

from .holder import holder_of
from .telemetry import Recorder, now

COUNT_S = 0.12  # a TensorFlow program has 300 000 objects: 0.1 s on one slow core
STEPS_APART, LEAST_S = 20, 0.5
LONGEST_S, LEAST_STEPS = 2.0, 3
CHECK_EVERY = 8192
CONTAINERS = (list, dict, set)
LEAST_LENGTH = 4  # of a container worth following
LEAST_BYTES = 16 << 10
NAMED = 4  # growers reported
TRACES = ("FuncGraph", "ConcreteFunction")
VARIABLES = ("ResourceVariable", "Variable")
SAMPLED = "sampled"


class Census:
    """How many of what are alive, by type; tensors by shape; containers by length. Numbers only."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.tensors: dict[tuple[str, str, bool], tuple[int, int]] = {}
        self.lengths: dict[int, int] = {}
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
        self._first = take(None, None)
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


def compare(first: Census, steps: int) -> tuple[list[dict[str, Any]], bool]:
    """What grew since, the most certain and the largest first."""
    began = now()
    least = max(3, int(0.3 * steps))
    grown: list[tuple[int, Any]] = []
    samples: dict[str, Any] = {}
    second = take((first, least, grown), samples)
    found = _containers(grown, began)
    named = {grower["what"] for grower in found}
    for key, (count, size) in second.tensors.items():
        before = first.tensors.get(key, (0, 0))
        if count - before[0] >= least and not any(key[0] in what for what in named):
            found.append(_tensors(key, count - before[0], size - before[1], samples, began))
    found += _others(first, second, least, samples, began)
    order = {"graph": 0, "trace": 0, "variable": 1, "data": 2}
    found = [grower for grower in found if grower["kind"] != "data" or grower["bytes"] >= LEAST_BYTES]
    found.sort(key=lambda grower: (order[grower["kind"]], not grower["holder"], -grower["bytes"]))
    return found[:NAMED], first.partial or second.partial


def take(since: Optional[tuple[Census, int, list[tuple[int, Any]]]], samples: Optional[dict[str, Any]]) -> Census:
    """One count. With `since`, containers that grew by so much are put into its list, and a sample of each type kept."""
    census = Census()
    deadline = now() + COUNT_S
    kinds = _Kinds()
    types: dict[type, int] = {}
    objects = gc.get_objects()
    try:
        for number, one in enumerate(reversed(objects)):  # the newest first: the script's own, if time is short
            if number % CHECK_EVERY == 0 and now() > deadline:
                census.partial = True
                break
            kind = type(one)
            types[kind] = types.get(kind, 0) + 1
            plain = kinds.get(kind)
            if plain is None:
                plain = kinds.learn(kind)
            if plain is False:
                continue
            if plain is True:
                _count_tensor(census, one, samples)
                continue
            if plain is SAMPLED:
                if samples is not None:
                    samples.setdefault(_type_name(kind), one)
                continue
            length = plain(one)
            if length >= LEAST_LENGTH and one is not types:
                if since is None:
                    census.lengths[id(one)] = length
                elif length - since[0].lengths.get(id(one), length) >= since[1]:
                    since[2].append((length - since[0].lengths[id(one)], one))
    finally:
        del objects
    for kind, count in types.items():
        name = _type_name(kind)
        census.types[name] = census.types.get(name, 0) + count
    return census


class _Kinds(dict):  # type: ignore[type-arg]
    """Of a type: False (only counted), True (a tensor), SAMPLED, or the function that gives a container's length."""

    def __init__(self) -> None:
        super().__init__()
        torch = sys.modules.get("torch")
        self.torch_types = {torch.Tensor} if torch is not None else set()

    def learn(self, kind: type) -> Any:
        answer: Any = False
        if kind in self.torch_types or kind.__name__ == "EagerTensor":
            answer = True
        elif kind.__name__ in TRACES + VARIABLES:
            answer = SAMPLED
        else:
            base = next((base for base in CONTAINERS if issubclass(kind, base)), None)
            if base is not None:
                answer = base.__len__  # not the type's own: no code of the user's runs here
        self[kind] = answer
        return answer


def _count_tensor(census: Census, one: Any, samples: Optional[dict[str, Any]]) -> None:
    what, size, graph = describe(one)
    key = (what, type(one).__module__, graph)
    count, total = census.tensors.get(key, (0, 0))
    census.tensors[key] = (count + 1, total + size)
    if samples is not None:
        samples.setdefault(what, one)


def describe(one: Any) -> tuple[str, int, bool]:
    """(`tensors (64, 128) float32`, bytes, whether it holds on to its graph), asked without touching a device."""
    kind = type(one)
    if kind.__module__.startswith("torch"):
        graph = bool(one.requires_grad and not one.is_leaf)
        shape, dtype = tuple(one.shape), str(one.dtype).replace("torch.", "")
        return f"tensors {shape} {dtype}", one.numel() * one.element_size(), graph
    if kind.__name__ == "EagerTensor":
        shape, dtype = tuple(one.shape.as_list() if one.shape.rank is not None else ()), one.dtype
        count = 1
        for length in shape:
            count *= length or 1
        return f"tensors {shape} {dtype.name}", count * dtype.size, False
    if kind.__name__ in VARIABLES and kind.__module__.startswith(("tensorflow", "keras")):
        return f"variables {tuple(one.shape)}", 0, False
    if kind.__name__ == "ndarray":
        return f"arrays {tuple(one.shape)} {one.dtype}", int(one.nbytes), False
    return f"{kind.__name__} objects", sys.getsizeof(one, 64) if kind in PLAIN else 64, False


PLAIN = (str, bytes, bytearray, int, float, tuple, list, dict, set)


def _weigh(item: Any, depth: int = 3) -> tuple[str, int, bool]:
    """An item of a container: what it mostly is, and what it and its parts take."""
    what, size, graph = describe(item)
    if depth and type(item) in (tuple, list, dict):
        parts = [_weigh(part, depth - 1) for part in list(item.values() if type(item) is dict else item)[:16]]
        if parts:
            heaviest = max(parts, key=lambda part: part[1])
            return heaviest[0], size + sum(part[1] for part in parts), any(part[2] for part in parts)
    return what, size, graph


def _containers(grown: list[tuple[int, Any]], began: float) -> list[dict[str, Any]]:
    found = []
    weighed = []
    for count, container in grown[:200]:
        items = _newest(container)
        if not items:
            continue
        parts = [_weigh(item) for item in items]
        size = sum(part[1] for part in parts) // len(parts) * count
        weighed.append((size, count, parts[-1], container))
    weighed.sort(key=lambda one: (one[2][2], one[0]), reverse=True)
    for size, count, (what, _, graph), container in weighed[:NAMED]:
        holder, of_the_data = holder_of(container, began, (grown, weighed))
        kept = f"{what}, each with its graph" if graph else what
        found.append(_grower("graph" if graph else "data", kept, count, size, holder, of_the_data))
    return found


def _newest(container: Any) -> list[Any]:
    try:
        if isinstance(container, list):
            return list.__getitem__(container, slice(-8, None))
        values = dict.values(container) if isinstance(container, dict) else set.__iter__(container)
        return list(values)[-8:]
    except RuntimeError:  # another thread changes it right now
        return []


def _tensors(
    key: tuple[str, str, bool], count: int, size: int, samples: dict[str, Any], began: float
) -> dict[str, Any]:
    what, _, graph = key
    one = samples.get(what)
    holder, of_the_data = holder_of(one, began, (samples,)) if one is not None else ("", False)
    kept = f"{what}, each with its graph" if graph else what
    return _grower("graph" if graph else "data", kept, count, size, holder, of_the_data)


def _others(first: Census, second: Census, least: int, samples: dict[str, Any], began: float) -> list[dict[str, Any]]:
    """Traces and variables made anew with every step, by their types."""
    found = []
    for name, count in second.types.items():
        more, short = count - first.types.get(name, 0), name.rpartition(".")[2]
        if more < least:
            continue
        if short in TRACES:
            function = str(getattr(samples.get(name), "name", "")).rpartition("/")[2]
            what = f"traces of {function}" if function else "traces of tf.functions"
            found.append(_grower("trace", what, more, 0, "", False))
        elif short in VARIABLES and name.startswith(("tensorflow.", "keras.")):
            holder, _ = holder_of(samples[name], began, (samples,)) if name in samples else ("", False)
            found.append(_grower("variable", f"{name.split('.')[0]} variables", more, 0, holder, False))
    return found[:2]


def _grower(kind: str, what: str, count: int, size: int, holder: str, of_the_data: bool) -> dict[str, Any]:
    return {
        "kind": kind,
        "what": what,
        "count": count,
        "bytes": size,
        "holder": holder,
        "of_the_data": of_the_data,
    }


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
