"""Whether the batches of one data set keep their form: the type and the number of axes of each part.

The lengths of axes may differ from batch to batch: texts are padded to the longest, pictures come in sizes.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple, TypedDict

SETTLED = 5  # batches after which a form counts as the usual one
TELLINGS = 5


class Changed(TypedDict):
    name: str
    was: str
    now: str
    what: str  # dtype or rank


class Forms:
    def __init__(self) -> None:
        self._usual: Dict[str, Tuple[Any, int]] = {}
        self._batches = 0
        self._told = 0

    def changed(self, parts: List[Tuple[str, Any]]) -> List[Changed]:
        """Of arrays with their names. A part that is not there, or a new one, is no change of form."""
        self._batches += 1
        found: List[Changed] = []
        usual = self._usual
        for name, array in parts:
            form = (array.dtype, len(array.shape))
            known = usual.setdefault(name, form)
            if known != form:
                if self._batches <= SETTLED:
                    usual[name] = form
                else:
                    found.append(_change(name, known, form))
        if not found or self._told >= TELLINGS:
            return []
        self._told += 1
        return found


def _change(name: str, known: Tuple[Any, int], form: Tuple[Any, int]) -> Changed:
    if known[0] != form[0]:
        return {"name": name, "was": _type(known[0]), "now": _type(form[0]), "what": "dtype"}
    return {"name": name, "was": _axes(known[1]), "now": _axes(form[1]), "what": "rank"}


def _type(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"
