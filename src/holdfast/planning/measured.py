"""What the training process told, line by line, as one object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.inside.plan.memory_curve import Curve, Point

# Of what steps add on the host: what glibc's heap loses to gaps in the steps that follow the measured ones; the same script took up
# to 8 % more in one process than in another. TensorFlow's own allocator keeps what earlier sizes took, and is measured above the
# truth rather than below it.
SETTLING_RATIO = {"torch": 0.05}
ELSEWHERE = 0.02
OWN_MAPPING_BYTES = 32 << 20  # glibc's highest border between its heap and mappings (DEFAULT_MMAP_THRESHOLD_MAX)


@dataclass(frozen=True, slots=True)
class Measured:
    """`points` ascend; the rest is of the largest batch that was measured, in bytes."""

    points: tuple[Point, ...]
    own_batch: int
    framework: str = ""
    held_before: int = 0  # when the first batch came
    data_bytes: int = 0  # of it, in the script's arrays and data sets
    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int | None = None
    batch_bytes: int = 0
    workers_bytes: int = 0
    largest_block: int = 0  # that is saved for the backward pass
    layers: tuple[tuple[str, int], ...] = ()
    layer_weights: Mapping[str, int] = field(default_factory=dict)
    optimizers: tuple[str, ...] = ()
    is_half: bool = False
    resized: bool = True  # False: only the script's own batch was measured

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def on_gpu(self) -> bool:
        return bool(self.last.gpu_bytes)

    @property
    def activations_a_row(self) -> float:
        return (self.activations or 0) / max(1, self.last.rows)

    @property
    def framework_bytes(self) -> int:
        """What was there before the first step and is neither weights nor data: libraries, and what they set up."""
        return max(0, self.held_before - self.data_bytes - (0 if self.on_gpu else self.weights))

    def host(self) -> Curve:
        rows, needed = [p.rows for p in self.points], [self._settled(p) + self.workers_bytes for p in self.points]
        a_row = 0.0 if self.on_gpu else self.activations_a_row
        bend = OWN_MAPPING_BYTES * self.last.rows / self.largest_block if self.largest_block else float("inf")
        return Curve(rows, needed, self.fixed + self.workers_bytes, a_row, bend)

    def _settled(self, point: Point) -> int:
        ratio = SETTLING_RATIO.get(self.framework, ELSEWHERE)
        return point.host_bytes + int(ratio * max(0, point.host_bytes - self.held_before))

    def gpu(self) -> Curve | None:
        if not self.on_gpu:
            return None
        fixed = self.weights + self.gradients + self.optimizer
        return Curve(
            [p.rows for p in self.points], [p.gpu_bytes or 0 for p in self.points], fixed, self.activations_a_row
        )

    @property
    def fixed(self) -> int:
        """Of the host, whatever the batch."""
        state = 0 if self.on_gpu else self.gradients + self.optimizer
        return min(self.held_before + state, self.points[0].host_bytes)


def measured(lines: Iterable[Mapping[str, Any]]) -> Measured | None:
    """None where no step was measured."""
    told = list(lines)
    begun = next((line for line in told if line.get("kind") == "begun"), None)
    found = [line for line in told if line.get("kind") == "point" and line.get("rows")]
    if begun is None or not found:
        return None
    last = found[-1]
    points = tuple(Point(p["rows"], p["host_bytes"], p["seconds"], p.get("gpu_bytes")) for p in found)
    return Measured(
        points=points,
        own_batch=int(begun.get("rows") or last["rows"]),
        framework=str(last.get("framework", "")),
        held_before=int(begun["held_bytes"]),
        data_bytes=int(begun.get("data_bytes") or 0),
        **{
            name: int(last.get(name) or 0)
            for name in ("weights", "gradients", "optimizer", "batch_bytes", "workers_bytes", "largest_block")
        },
        activations=last.get("activations"),
        layers=tuple((str(layer["name"]), int(layer["bytes"])) for layer in last.get("layers", ())),
        layer_weights=dict(last.get("layer_weights") or {}),
        optimizers=tuple(last.get("optimizers") or ()),
        is_half=bool(last.get("half")),
        resized=bool(begun.get("resizes", True)),
    )


def lines_of(text: str) -> list[dict[str, Any]]:
    """Without a last line that was cut off."""
    found = []
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict):
            found.append(one)
    return found
