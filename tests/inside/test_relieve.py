"""Relief gives back what is held without need, and says how much."""

from __future__ import annotations

import gc
import re

from holdfast.inside import relieve
from holdfast.inside.telemetry import Recorder


class _Ring:
    def __init__(self) -> None:
        self.commands: list[dict[str, object]] = []
        self.texts: list[tuple[str, dict[str, object]]] = []

    def command(self) -> dict[str, object] | None:
        return self.commands.pop(0) if self.commands else None

    def text(self, kind: str, at: float, **data: object) -> None:
        self.texts.append((kind, data))


def _circles() -> None:
    gc.disable()
    for _ in range(200):
        circle: list[object] = [bytearray(b"x") * (200 << 10)]
        circle.append(circle)


def test_garbage_that_waits_to_be_collected_comes_back() -> None:
    _circles()
    try:
        found = re.fullmatch(r"collected(, \w[\w ]*)*: (\d+) MiB back in [\d.]+ s", relieve.relieve())
    finally:
        gc.enable()
    assert found is not None and int(found[2]) >= 30


def test_it_is_obeyed_at_a_step_and_answered() -> None:
    ring = _Ring()
    recorder = Recorder(ring)  # type: ignore[arg-type]
    relieve.install(recorder)
    ring.commands.append({"do": "relieve", "id": "guard:relieve:1"})
    recorder.obey()
    kind, data = ring.texts[-1]
    assert (kind, data["id"], data["do"]) == ("command.done", "guard:relieve:1", "relieve")
    assert str(data["result"]).startswith("collected")
