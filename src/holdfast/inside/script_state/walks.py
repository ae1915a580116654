"""How far a loop over lists, tuples and dicts is, by the state of its iterators, and putting it elsewhere.

Also where several are gone through by one `zip`.
"""

from __future__ import annotations

import ast
import gc
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .refusal import CannotTake

_OF_DICTS: Dict[str, type] = {name: type(iter(getattr({}, name)())) for name in ("keys", "values", "items")}
_OF_SEQUENCES: Tuple[type, ...] = (type(iter([])), type(iter(())))


class Walk(NamedTuple):
    container: Any
    iterator: Any

    @property
    def taken(self) -> int:
        """Items it has given."""
        if isinstance(self.container, dict):
            return len(self.container) - int(self.iterator.__length_hint__())
        return int(self.iterator.__reduce__()[2])

    def put(self, number: int) -> Any:
        """So that it has given this many. Returns the last of them, where it has moved."""
        if not isinstance(self.container, dict):
            self.iterator.__setstate__(number)
            return self.container[number - 1] if number else None
        item = None
        for _ in range(number - self.taken):
            item = next(self.iterator)
        return item


def containers(node: ast.expr, value_of: Any) -> Optional[List[ast.expr]]:
    """The lists, tuples and dicts that `for … in node` goes through, as they stand in the source; None for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip" and node.args:
        parts = [containers(one, value_of) for one in node.args] if not node.keywords else [None]
        return [one for part in parts if part for one in part] if all(parts) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_DICTS:
        is_view = not node.args and isinstance(value_of(node.func.value), dict)
        return [node] if is_view else None
    return [node] if isinstance(value_of(node), (list, tuple, dict)) else None


def walk(node: ast.expr, value_of: Any, line: int) -> Walk:
    """The one iterator that goes through it."""
    kinds = _OF_SEQUENCES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        kinds, node = (_OF_DICTS[node.func.attr],), node.func.value
    container = value_of(node)
    if isinstance(container, dict) and kinds is _OF_SEQUENCES:
        kinds = (_OF_DICTS["keys"],)
    found = [one for one in gc.get_referrers(container) if type(one) in kinds and _goes_over(one, container)]
    if len(found) != 1:
        raise CannotTake(f"how far the loop on line {line} is cannot be told: {len(found)} iterators go over the same")
    return Walk(container, found[0])


def _goes_over(iterator: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return any(one is container for one in gc.get_referents(iterator))
    reduced = iterator.__reduce__()
    return len(reduced) == 3 and reduced[1][0] is container
