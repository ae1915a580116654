"""Notices a framework that runs in a Python our part did not get into, and says so once."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.vocabulary import Event, Sample

PATIENCE_S = 120.0  # an import from a slow disk, on a busy machine


class InjectionCheck:
    def __init__(self) -> None:
        self._expected: dict[int, tuple[str, float]] = {}
        self._said = False

    def look(self, readings: Iterable[Sample | Event], greeted: set[int], now: float) -> list[Event]:
        line = self.missing(readings, greeted, now)
        return [] if line is None else [Event("inside.absent", now, {"reason": line})]

    def missing(self, readings: Iterable[Sample | Event], greeted: set[int], now: float) -> str | None:
        """A line for the user, the first time that one is due."""
        for reading in readings:
            if isinstance(reading, Event) and reading.kind == "framework":
                self._expected[int(reading.data["pid"])] = (str(reading.data["name"]), now)
        if self._said or greeted:
            return None
        for name, since in self._expected.values():
            if now - since > PATIENCE_S:
                self._said = True
                return (
                    f"{name} runs in a Python that does not load Holdfast's part (started with -I, -E or -S, or with "
                    "another PYTHONPATH?): steps and loss are not seen, the rest is watched"
                )
        return None
