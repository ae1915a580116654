"""The containers a script holds, found from where its names are: variables of running functions, of modules, attributes.

Walking down from names gives each container the name its owner would use, and is bounded; asking who refers to what
visits every object there is, 350 000 with TensorFlow.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from types import FrameType, ModuleType
from typing import Any, Iterator, Optional, Sequence

from .frameworks import BY_MODULE
from .library_paths import is_library

used = time.thread_time  # of the processor, by this thread: on a crowded machine the clock would run out first

SECONDS = 0.04
OBJECTS = 20000
DEPTH = 5
FRAMES = 40
OPENED = 64  # a container with more items is not walked into: it is what may grow
OPTIMIZED = 0x1  # a function's frame, whose f_locals are a copy
CONTAINERS = (list, dict, set, deque)
ATOMS = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, FrameType)
STANDARD_LIBRARY = os.path.dirname(os.__file__)
LIBRARIES = ("numpy", *BY_MODULE)  # where one of them lies, there are others


class Held:
    """A container, by what name, and whether that is part of the data set. Only for as long as an examination takes."""

    __slots__ = ("container", "name", "of_the_data")

    def __init__(self, container: Any, name: str, of_the_data: bool) -> None:
        self.container = container
        self.name = name
        self.of_the_data = of_the_data


def held_containers() -> Iterator[Held]:
    """Breadth first, so that the nearest name of a thing is the one it gets."""
    deadline = used() + SECONDS
    seen: set[int] = set()
    modules = _scripts_modules()
    scripts = {module.__name__ for module in modules}
    queue: deque[tuple[Any, str, int, bool]] = deque((one, name, 0, False) for name, one in _names(modules))
    while queue and len(seen) < OBJECTS and used() < deadline:
        one, name, depth, of_the_data = queue.popleft()
        if id(one) in seen or issubclass(type(one), ATOMS):
            continue
        seen.add(id(one))
        if issubclass(type(one), CONTAINERS):
            if _length(one) is None:
                continue
            yield Held(one, name, of_the_data)
            inner = [(item, name) for item in _items(one)] if len(one) <= OPENED else []
        else:
            attributes = {**_shared(type(one), scripts), **attributes_of(one)}
            short = type(one).__qualname__.rpartition(".")[2]
            of_the_data = of_the_data or _is_data(one)
            inner = [(value, f"{short}.{key}") for key, value in list(attributes.items()) if isinstance(key, str)]
        if depth < DEPTH:
            queue.extend((item, called, depth + 1, of_the_data) for item, called in inner)


def _names(modules: list[ModuleType]) -> Iterator[tuple[str, Any]]:
    frame: Optional[FrameType] = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None:
            break
        if not (frame.f_globals.get("__package__") or "").startswith(("holdfast_inside", "holdfast.inside")):
            yield from _locals(frame)
        frame = frame.f_back
    for module in modules:
        called = os.path.splitext(os.path.basename(str(module.__file__)))[0]
        for name, one in list(vars(module).items()):
            if not name.startswith("__"):
                yield f"{called}.{name}", one


def _locals(frame: FrameType) -> list[tuple[str, Any]]:
    code = frame.f_code
    if not code.co_flags & OPTIMIZED:
        return []
    variables = frame.f_locals
    place = f"{code.co_name}() of {os.path.basename(code.co_filename)}"
    found = [(f"{name} in {place}", one) for name, one in variables.items()]
    if type(variables) is dict:
        # Before Python 3.13 the copy stays with the frame and would keep what the script drops.
        for variable in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            variables.pop(variable, None)
    return found


def _scripts_modules() -> list[ModuleType]:
    """The script itself and what it imported of its own: nothing from where libraries lie."""
    places = [os.path.dirname(os.path.dirname(_file(sys.modules.get(name)))) for name in LIBRARIES]
    elsewhere = (STANDARD_LIBRARY, *(place + os.sep for place in places if place))
    return [
        module
        for name, module in list(sys.modules.items())
        if _file(module)
        and (name == "__main__" or not _is_elsewhere(_file(module), elsewhere))
        and not _is_ours(module)
    ]


def _is_elsewhere(path: str, places: Sequence[str]) -> bool:
    return is_library(path) or any(place in path for place in places)


def _file(module: Any) -> str:
    path = getattr(module, "__file__", None) if type(module) is ModuleType else None
    return path if isinstance(path, str) else ""


def _shared(kind: type, scripts: set[str]) -> dict[Any, Any]:
    """What a class of the script's holds for all its instances."""
    if kind.__module__ not in scripts:
        return {}
    return {key: value for key, value in list(vars(kind).items()) if issubclass(type(value), CONTAINERS)}


def _is_ours(module: ModuleType) -> bool:
    return module.__name__.startswith(("holdfast_inside", "holdfast."))


def _length(container: Any) -> Optional[int]:
    """None where the type has a length of its own: no code of the user's runs here."""
    base = next(base for base in CONTAINERS if issubclass(type(container), base))
    return len(container) if type(container).__len__ is base.__len__ else None


def _items(container: Any) -> list[Any]:
    try:
        return list(dict.values(container)) if issubclass(type(container), dict) else list(container)
    except RuntimeError:  # another thread changes it right now
        return []


def attributes_of(one: Any) -> dict[Any, Any]:
    try:
        found = object.__getattribute__(one, "__dict__")  # not the class's own: no code of the user's runs here
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_data(one: Any) -> bool:
    return any("Dataset" in base.__name__ or base.__name__ == "Sequence" for base in type(one).__mro__)
