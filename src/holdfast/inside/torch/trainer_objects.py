"""Objects of trainers' libraries whose attributes belong to the state of a training loop, and which of their attributes do.

Other objects of libraries are left as the new process makes them: see `script_state/object_graph`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..script_state.object_graph import PLAIN

SMALL = 1000  # items
Keeps = Callable[[str, Any], bool]  # an attribute by name and value


class _Rule(NamedTuple):
    kind: Any
    keeps: Keeps
    is_made: bool  # False: where the new process has none, there is none


class _Registered:
    rules: List[_Rule] = []  # noqa: RUF012
    left: Tuple[str, ...] = ()
    known: Dict[type, Optional[_Rule]] = {}  # noqa: RUF012


def register(kind: Any, keeps: Keeps, is_made: bool = True) -> None:
    _Registered.rules.append(_Rule(kind, keeps, is_made))
    _Registered.known.clear()


def leave(*modules: str) -> None:
    """Of objects whose classes stand in these modules, or below, nothing is kept."""
    _Registered.left += modules
    _Registered.known.clear()


def is_kept(value: Any) -> bool:
    return _rule_of_class(type(value)) is not None


def can_be_made(kind: type) -> bool:
    """A trainer of an earlier turn of the script is not made anew: it is a process's own, with all it holds."""
    rule = _rule_of_class(kind)
    return rule is None or rule.is_made


def is_skipped(owner: Any, name: str, value: Any) -> bool:
    rule = _rule_of_class(type(owner))
    return rule is not None and not rule.keeps(name, value)


def _rule_of_class(kind: type) -> Optional[_Rule]:
    if kind not in _Registered.known:
        rule = next((one for one in _Registered.rules if issubclass(kind, one.kind)), None)
        is_left = rule is not None and kind.__module__.startswith(_Registered.left or ("\0",))
        _Registered.known[kind] = _Rule(kind, these(), False) if is_left else rule
    return _Registered.known[kind]


def everything(_name: str, _value: Any) -> bool:
    return True


def plain_values(_name: str, value: Any) -> bool:
    return type(value) in PLAIN


def is_small(value: Any) -> bool:
    """What a data set holds more of is data, not state."""
    if type(value) in PLAIN:
        return True
    if hasattr(value, "shape"):
        return False
    return not hasattr(value, "__len__") or len(value) <= SMALL


def these(*names: str) -> Keeps:
    return lambda name, _value: name in names


def all_but(*names: str) -> Keeps:
    return lambda name, _value: name not in names
