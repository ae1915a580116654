"""Private names of a framework, and what Holdfast can do where they are.

Each framework's folder has a `seams.py`, the only file there that knows private names: a table of them, and the functions
through which the rest of the folder uses them. The table is checked when the adapter is installed. A part of Holdfast whose
names are not all there is not installed, and what is lost by that is told: one `capabilities` event.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

TELEMETRY, CHECKPOINT, RESUME, RESCUE = "telemetry", "checkpoint", "resume", "rescue"
ABILITIES = (TELEMETRY, CHECKPOINT, RESUME, RESCUE)
NUMERICS = "numerics"  # looks at numbers, as far as they need names of their own: nothing asks for it, the record tells (`numerics.off`)
DETAIL = "detail"  # nothing a user would miss: a phase that is not named, a frame of ours in a traceback
YES, OFF = "yes", "off"  # off: this run did not ask for it
NO = "no: "


class Seam(NamedTuple):
    """A name in `module`, and the abilities that are lost without it.

    `name` may have dots. `assigned`: an attribute that methods of the class `name` give their instances.
    `inner`: a variable of one of those methods, which a function made in it uses.
    """

    module: str
    name: str
    serves: Tuple[str, ...]
    assigned: str = ""
    inner: str = ""

    def __str__(self) -> str:
        return ".".join(part for part in (self.module, self.name, self.assigned or self.inner) if part)

    def is_there(self) -> bool:
        found: Any = sys.modules.get(self.module)
        for part in self.name.split(".") if self.name else ():
            if found is None:
                return False
            found = getattr(found, part, None)
        if found is None:
            return False
        if self.assigned:
            return any(self.assigned in code.co_names for code in _methods(found)) or hasattr(found, self.assigned)
        if self.inner:
            return any(self.inner in code.co_cellvars for code in _methods(found))
        return True


def _methods(owner: Any) -> Iterator[types.CodeType]:
    for kind in getattr(owner, "__mro__", ()):
        for member in vars(kind).values():
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
            if code is not None:
                yield code


class Abilities:
    """What the adapter of one framework can do in this process."""

    def __init__(self, title: str, version: str, seen: str, seams: Iterable[Seam]) -> None:
        self._title = f"{title} {version}"
        self._seen = seen
        self.missing: List[Seam] = [seam for seam in seams if not seam.is_there()]
        self._reasons: Dict[str, str] = {}

    def cannot(self, ability: str, reason: str) -> None:
        """For another reason than a name that is not there."""
        self._reasons.setdefault(ability, reason)

    def why_not(self, ability: str) -> str:
        """Nothing where it can be done."""
        lost = [str(seam) for seam in self.missing if ability in seam.serves]
        if not lost:
            return self._reasons.get(ability, "")
        more = f" and {len(lost) - 1} more names are" if len(lost) > 1 else " is"
        return f"{lost[0]}{more} not in {self._title} (known: {self._seen})"

    def can(self, ability: str) -> bool:
        return not self.why_not(ability)

    def tell(self, recorder: Any, framework: str, wanted: Sequence[str], **about: Any) -> None:
        told = {}
        for ability in ABILITIES:
            reason = self.why_not(ability)
            told[ability] = NO + reason if reason else YES
            if ability not in wanted:
                told[ability] = OFF
        details = [str(seam) for seam in self.missing]
        recorder.event("capabilities", framework=framework, title=self._title, missing=details, **told, **about)
