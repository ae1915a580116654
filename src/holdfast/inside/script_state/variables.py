"""The variables of a script: of the frames its loop stands in, and of its modules. Taken as one graph, and put back."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, ModuleType
from typing import Any, Dict, List, Set, Tuple

from ..library_paths import is_library
from . import frame_variables
from .frames import instruction_of
from .live_names import live_after, read_by_functions
from .object_graph import Graph, Ref
from .object_restore import Missing, Restoration
from .refusal import CannotPutBack
from .source_position import standing

Names = Dict[str, Ref]
_libraries: Dict[str, bool] = {}
_live: Dict[Tuple[CodeType, int], Set[str]] = {}


def take(graph: Graph, frames: List[FrameType]) -> Dict[str, Any]:
    """Live ones only: what will be written before it is read is not worth keeping, and often cannot be."""
    locals_of: List[Names] = []
    modules: Dict[str, Names] = {}
    standing = {frame.f_globals.get("__name__"): frame for frame in frames if frame_variables.is_module(frame)}
    for name, module in users_modules():
        frame = standing.get(name)
        names = vars(module)
        modules[name] = _taken(graph, names, set(names) if frame is None else _live_globals(frame))
    for frame in frames:
        module_frame = frame_variables.is_module(frame)
        locals_of.append({} if module_frame else _taken(graph, frame.f_locals, _live_locals(frame)))
    return {"frames": locals_of, "modules": modules}


def bind(restoration: Restoration, taken: Dict[str, Any], frames: List[FrameType]) -> None:
    for frame, names in zip(frames, taken["frames"]):
        held = frame.f_locals
        for name, ref in names.items():
            if name in held:
                restoration.bind(ref, held[name])
    for module_name, names in taken["modules"].items():
        held = vars(sys.modules[module_name]) if module_name in sys.modules else {}
        for name, ref in names.items():
            if name in held:
                restoration.bind(ref, held[name])


def put_back(restoration: Restoration, taken: Dict[str, Any], frames: List[FrameType]) -> None:
    """Everything is resolved and filled before the first name is written: an error leaves the names as they were."""
    modules = {
        name: _values(restoration, names, vars(sys.modules[name]))
        for name, names in taken["modules"].items()
        if name in sys.modules
    }
    locals_of = [_values(restoration, names, frame.f_locals) for frame, names in zip(frames, taken["frames"])]
    for frame, values in zip(frames, locals_of):
        of_module = frame_variables.is_module(frame)
        _check_grown(frame, modules.get(str(frame.f_globals.get("__name__")), {}) if of_module else values)
    restoration.fill()
    for name, values in modules.items():
        vars(sys.modules[name]).update(values)
    for frame, values in zip(frames, locals_of):
        if values:
            frame_variables.write(frame, values)


def _check_grown(frame: FrameType, values: Dict[str, Any]) -> None:
    """What a statement under way has read already: the same list, or the same value."""
    for name in _read_already(frame):
        saved, held = values.get(name), frame.f_locals.get(name)
        if saved is not held and (type(saved) is list or repr(saved) != repr(held)):
            raise CannotPutBack(f"`{name}`, which was read before the call on line {frame.f_lineno}, is another one")


def _read_already(frame: FrameType) -> Set[str]:
    found = standing(frame)
    return {*found.grown, *found.read}


def _values(restoration: Restoration, names: Names, held: Any) -> Dict[str, Any]:
    found = {}
    for name, ref in names.items():
        try:
            found[name] = restoration.object_of(ref)
        except Missing:
            continue  # it belonged to the process that is gone: as this one has it
        except CannotPutBack as error:
            raise CannotPutBack(f"`{name}`: {error}") from None
    return found


def _taken(graph: Graph, held: Any, live: Set[str]) -> Names:
    return {
        name: graph.take(value)
        for name, value in list(held.items())
        if name in live and not (name.startswith("__") and name.endswith("__")) and not isinstance(value, ModuleType)
    }


def _live_locals(frame: FrameType) -> Set[str]:
    key = (frame.f_code, instruction_of(frame))
    if key not in _live:
        _live[key] = live_after(*key) | _read_already(frame)
    return _live[key]


def _live_globals(frame: FrameType) -> Set[str]:
    key = (frame.f_code, instruction_of(frame))
    if key not in _live:
        _live[key] = live_after(*key) | read_by_functions(frame.f_code) | _read_already(frame)
    return _live[key]


def users_modules() -> List[Tuple[str, ModuleType]]:
    if _modules.seen != len(sys.modules):  # thousands are loaded: looked through only when there are new ones
        _modules.seen = len(sys.modules)
        _modules.users = [(name, one) for name, one in list(sys.modules.items()) if _is_users(name, one)]
    return _modules.users


class _Modules:
    seen = 0
    users: List[Tuple[str, ModuleType]] = []  # noqa: RUF012


_modules = _Modules()


def _is_users(name: str, module: Any) -> bool:
    if not isinstance(module, ModuleType) or name.startswith(("holdfast", "sitecustomize")):
        return False
    path = module.__dict__.get("__file__")
    if name == "__main__" or not isinstance(path, str):
        return name == "__main__"
    if path not in _libraries:
        _libraries[path] = is_library(path)
    return not _libraries[path]
