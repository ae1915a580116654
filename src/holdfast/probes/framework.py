"""Which framework the job has loaded, seen from outside: its libraries are mapped into the process."""

from __future__ import annotations

from holdfast.inside.frameworks import FRAMEWORKS
from holdfast.probes.contract import Reading, Scope
from holdfast.probes.kernel_files import read
from holdfast.probes.tree import Tree
from holdfast.vocabulary import Event

PROCESSES = 8
LOOKS = 60  # five minutes: a job without a framework until then has none


class Framework:
    name = "framework"
    every_s = 5.0

    def __init__(self, scope: Scope) -> None:
        self._tree = Tree(scope)
        self._seen: set[str] = set()
        self._looks_left = LOOKS

    def read(self, now: float) -> list[Reading]:
        if self._looks_left <= 0:
            return []
        self._looks_left -= 1
        return self._look(now)

    def closing(self, now: float) -> list[Reading]:
        return []

    def _look(self, now: float) -> list[Reading]:
        found: list[Reading] = []
        for pid in list(self._tree.refresh())[:PROCESSES]:  # the trainer is among the first
            try:
                maps = read(f"{self._tree.proc}/{pid}/maps")
            except OSError:
                continue
            for one in FRAMEWORKS:
                if one.library and one.library in maps and one.module not in self._seen:
                    self._seen.add(one.module)
                    found.append(Event("framework", now, {"name": one.module, "pid": pid}))
        return found
