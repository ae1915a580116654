"""One sample of a training step, as the training process tells it. Whatever it could not tell is None or empty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from holdfast.vocabulary import Event


def number(value: object) -> float | None:
    """NaN and infinity come as words."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def finite(value: object) -> float | None:
    found = number(value)
    return found if found is not None and math.isfinite(found) else None


@dataclass(frozen=True, slots=True)
class Group:
    """A layer's weights in one sample."""

    name: str
    weight: float | None
    gradient: float | None  # None: there is none at all
    update: float | None
    zero_share: float | None
    numbers: int

    @property
    def update_ratio(self) -> float | None:
        if self.update is None or not self.weight or not math.isfinite(self.update):
            return None
        return self.update / self.weight

    @property
    def gradient_rms(self) -> float | None:
        """Of one number: layers of different size are compared by it."""
        if self.gradient is None or not math.isfinite(self.gradient) or not self.numbers:
            return None
        return self.gradient / math.sqrt(self.numbers)


@dataclass(frozen=True, slots=True)
class Units:
    layer: str
    activation: str
    dead: float
    saturated: float


@dataclass(frozen=True, slots=True)
class Classes:
    """Of the labels of one batch."""

    distinct: int
    share: float
    rows: int
    most_common: str


@dataclass(frozen=True, slots=True)
class Health:
    """One sample of a training step."""

    at: float
    step: int
    loss: float | None
    rate: float | None
    groups: tuple[Group, ...]
    units: tuple[Units, ...]
    classes: Classes | None
    correct: float | None
    spread: float | None
    scale: float | None
    left_out: tuple[str, ...] = ()
    unregistered: tuple[str, ...] = ()
    carried: float | None = None
    never_trained: bool = False
    epoch: int | None = None

    @property
    def moved(self) -> float | None:
        """By how much of themselves the weights move: the middle layer's."""
        ratios = [ratio for group in self.groups if (ratio := group.update_ratio) is not None and group.numbers > 16]
        return median(ratios) if ratios else None

    @property
    def moved_as_a_whole(self) -> float | None:
        """Of models that are small, too."""
        known = [(group.update, group.weight) for group in self.groups if group.update is not None and group.weight]
        weights, updates = (math.hypot(*(pair[place] or 0.0 for pair in known)) for place in (1, 0))
        return updates / weights if known and math.isfinite(updates) and math.isfinite(weights) else None

    @classmethod
    def of(cls, event: Event) -> Health:
        data = event.data
        groups = (row for row in data.get("groups") or () if len(row) >= 6)
        units = (row for row in data.get("units") or () if len(row) >= 4)
        return cls(
            event.at,
            int(number(data.get("step")) or 0),
            number(data.get("loss")),
            finite(data.get("rate")),
            tuple(
                Group(str(r[0]), number(r[1]), number(r[2]), number(r[3]), finite(r[4]), int(number(r[5]) or 0))
                for r in groups
            ),
            tuple(Units(str(r[0]), str(r[1] or ""), finite(r[2]) or 0.0, finite(r[3]) or 0.0) for r in units),
            _classes(data.get("classes")),
            finite(data.get("correct")),
            finite(data.get("spread")),
            finite(data.get("scale")),
            tuple(str(name) for name in data.get("left_out") or ()),
            tuple(str(name) for name in data.get("unregistered") or ()),
            finite(data.get("carried")),
            data.get("never_trained") is True,
            None if finite(data.get("epoch")) is None else int(finite(data.get("epoch")) or 0),
        )


def _classes(row: object) -> Classes | None:
    if not isinstance(row, Sequence) or len(row) < 4 or finite(row[1]) is None:
        return None
    return Classes(int(finite(row[0]) or 0), finite(row[1]) or 0.0, int(finite(row[2]) or 0), str(row[3]))
