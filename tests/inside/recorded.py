"""In place of a ring: what is told of, in a list."""

from __future__ import annotations

from typing import Any


class Events:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def text(self, kind: str, _at: float, **data: Any) -> None:
        self.told.append((kind, data))

    def step(self, *_: Any) -> None:
        pass

    value = step

    def command(self) -> None:
        return None
