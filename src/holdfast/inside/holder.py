"""Names what holds an object: a module's variable, an attribute, a variable of a function that runs."""

from __future__ import annotations

import gc
import os
import sys
from types import FrameType, ModuleType
from typing import Any, Optional

from .telemetry import now

SEARCH_S = 0.12  # of a whole examination; one look at who refers to something takes 10 to 25 ms
LEVELS = 3
FRAMES = 40
OPTIMIZED = 0x1  # a function's frame, whose f_locals are a copy


def holder_of(one: Any, began: float, not_these: tuple[Any, ...]) -> tuple[str, bool]:
    """(its holder as the user would write it, whether that is part of the data set). ("", False) when not found."""
    ours = {id(thing) for thing in not_these}
    chain: list[Any] = [one]
    for _ in range(LEVELS):
        local = _local_name(chain[-1])
        if local:
            return local, False
        if now() - began > SEARCH_S:
            break
        referrers = gc.get_referrers(chain[-1])
        try:
            named, upwards = _among(referrers, chain[-1], ours | {id(referrers), id(chain)})
        finally:
            del referrers
        if named is not None:
            return named
        if upwards is None:
            break
        chain.append(upwards)
    return "", False


def _among(referrers: list[Any], one: Any, ours: set[int]) -> tuple[Optional[tuple[str, bool]], Any]:
    """A name, or else something to ask further about."""
    upwards: Any = None
    for referrer in referrers:
        if id(referrer) in ours or isinstance(referrer, FrameType):
            continue
        if type(referrer) is dict:
            module = _module_of(referrer)
            if module:
                key = _key_of(referrer, one)
                if key and not key.startswith("__"):
                    return (f"{module}.{key}", False), None
            upwards = upwards if type(upwards) is dict else referrer
            continue
        attribute = _attribute_of(referrer, one)
        if attribute:
            return (f"{_class_name(referrer)}.{attribute}", _is_data(referrer)), None
        if isinstance(referrer, (list, tuple, set)) or type(referrer).__name__ in ("deque", "cell"):
            upwards = upwards if upwards is not None else referrer
    if type(upwards) is dict:
        owned = _owner_of_dict(upwards, one)
        if owned is not None:
            return owned, None
    return None, upwards


def _owner_of_dict(attributes: Any, one: Any) -> Optional[tuple[str, bool]]:
    """Where the dict is an object's attributes: that object's class and the attribute."""
    key = _key_of(attributes, one)
    if not key:
        return None
    for owner in gc.get_referrers(attributes):
        if not isinstance(owner, (dict, FrameType)) and _attributes(owner) is attributes:
            return f"{_class_name(owner)}.{key}", _is_data(owner)
    return None


def _attribute_of(owner: Any, one: Any) -> str:
    """Attributes may live in the object itself, without a dict (Python 3.11 and later)."""
    if isinstance(owner, (type, ModuleType, dict, list, tuple, set)) or type(owner).__module__ == "builtins":
        return ""
    attributes = _attributes(owner)
    return _key_of(attributes, one) if isinstance(attributes, dict) else ""


def _attributes(owner: Any) -> Any:
    try:
        return object.__getattribute__(owner, "__dict__")  # not the class's own: no code of the user's runs here
    except Exception:  # noqa: BLE001 - an object of any making
        return None


def _key_of(mapping: dict[Any, Any], one: Any) -> str:
    try:
        return next((key for key, value in dict.items(mapping) if value is one and isinstance(key, str)), "")
    except RuntimeError:  # another thread changes it right now
        return ""


def _module_of(namespace: dict[Any, Any]) -> str:
    name = namespace.get("__name__")
    if not isinstance(name, str) or "__spec__" not in namespace:
        return ""
    if name == "__main__":
        path = namespace.get("__file__") or (sys.argv[0] if sys.argv else "")
        return os.path.splitext(os.path.basename(str(path)))[0] or name
    return name


def _local_name(one: Any) -> str:
    """A variable of a function that runs now, in this thread: the training loop's own are found here."""
    frame: Optional[FrameType] = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None:
            return ""
        here = frame.f_globals.get("__package__") or ""
        if not here.startswith(("holdfast_inside", "holdfast.inside")) and frame.f_code.co_flags & OPTIMIZED:
            name = _local_in(frame, one)
            if name:
                return f"{name} in {frame.f_code.co_name}() of {os.path.basename(frame.f_code.co_filename)}"
        frame = frame.f_back
    return ""


def _local_in(frame: FrameType, one: Any) -> str:
    variables, code = frame.f_locals, frame.f_code
    name = next((key for key, value in variables.items() if value is one), "")
    if type(variables) is dict:
        # Before Python 3.13 the copy stays with the frame and would keep what the script drops.
        for variable in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            variables.pop(variable, None)
    return name


def _class_name(owner: Any) -> str:
    return type(owner).__qualname__.replace("<locals>.", "")


def _is_data(owner: Any) -> bool:
    return any("Dataset" in base.__name__ or "Sequence" in base.__name__ for base in type(owner).__mro__)
