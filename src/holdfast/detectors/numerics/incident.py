"""One event of the training process about a value that is not finite: read, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.detectors.numerics.facts import Part
from holdfast.detectors.numerics.samples import finite, number
from holdfast.vocabulary import Event


@dataclass(frozen=True, slots=True)
class Incident:
    at: float
    step: int
    seen_at: int
    seen_in: str
    origin: str
    reproduced: bool | None
    replay: str
    input: Part
    place: Part
    values: str
    before: Part
    half: str
    skipped: bool
    had_numbers: bool = False

    @classmethod
    def of(cls, event: Event) -> Incident:
        data = event.data
        part = partial(Part.of, data)
        step = int(number(data.get("step")) or 0)
        reproduced = data.get("reproduced")
        return cls(
            event.at, step, int(number(data.get("seen_at")) or step), str(data.get("seen_in") or "loss"),
            str(data.get("origin") or "unknown"), reproduced if isinstance(reproduced, bool) else None,
            str(data.get("replay") or ""), part("input"), part("place"), str(data.get("values") or ""), part("before"),
            str(data.get("half") or ""), bool(data.get("skipped_by_scaler")), bool(data.get("had_numbers")),
        )  # fmt: skip

    @property
    def op(self) -> str:
        return self.place.text("op").lower().rstrip("0123456789").removesuffix("backward").lstrip("_")

    def grew(self, name: str) -> float:
        """How many times as large the last reading before it was as an ordinary one."""
        course = [finite(row[1]) for row in self.before[name] or () if isinstance(row, Sequence) and len(row) > 1]
        known = [abs(value) for value in course if value is not None]
        if any(value is None for value in course[:-1]) or len(known) < 2:
            return 1.0
        usual = sorted(known)[len(known) // 4] or 1e-30
        return max(known[-2:]) / usual


def first_line(incident: Incident) -> str:
    late = f" (noticed at step {incident.seen_at})" if incident.seen_at > incident.step else ""
    seen = {"loss": "the loss", "gradient": "a gradient", "weights": "weights", "metric": "a metric",
            "slot": "the optimizer's running means", "output": "the model's output",
            "statistics": "running statistics of a normalisation"}.get(incident.seen_in, "a value")  # fmt: skip
    begun = f"{seen} became NaN or infinite in step {incident.step}{late}"
    if incident.origin in ("input", "target"):
        return f"{begun}: {of_data(incident)}"
    if incident.origin == "constant":
        return f"{begun}: {_of_constant(incident)}"
    words = {
        "forward": "it began in the forward pass",
        "loss": "it began in the loss function, with an output of the model that was finite",
        "backward": "it began in the backward pass; the loss itself was finite",
        "update": "it began with the optimizer's update; the gradients were finite",
        "weights": "the weights were not finite before",
    }.get(incident.origin, "where it began is not known")
    return f"{begun}: {words}"


def _of_constant(incident: Incident) -> str:
    data = incident.input
    places = list(data["indices"] or ())
    where = f" at {_listed(places, len(places))}" if places else ""
    return f"{data.text('name')}, which the script made itself and which is no part of the data, holds {data.text('what') or 'NaN'}{where}"


def of_data(incident: Incident) -> str:
    data = incident.input
    what = data.text("what") or "NaN"
    whose = (
        "its labels hold" if incident.origin == "target" else f"its input {data.text('name')} holds".replace("  ", " ")
    )
    rows, columns, indices = (list(data[name] or ()) for name in ("rows", "columns", "indices"))
    count = int(finite(data["row_count"]) or len(rows))
    text = f"{whose} {what} in {count} {'row' if count == 1 else 'rows'}"
    if rows:
        text += f" ({'row' if count == 1 else 'rows'} {_listed(rows, count)} of the batch"
        text += f"; {_listed(indices, count)} of the data set)" if indices else ")"
    elif indices:
        text += f" ({_listed(indices, count)} of the data set)"
    if columns:
        text += f", column{'s' if len(columns) > 1 else ''} {_listed(columns, len(columns))}"
    if data["source_clean"]:
        text += "; the data set itself is finite there: what is done to a row on its way makes it so"
    return text


def _listed(items: Sequence[Any], count: int) -> str:
    shown = ", ".join(str(item) for item in items[:5])
    return shown + (", …" if count > 5 or len(items) > 5 else "")


def where(incident: Incident) -> str:
    place = incident.place
    op, layer, line, code = (place.text(name) for name in ("op", "layer", "line", "code"))
    parts = [f"the first operation with such a result: {op}" if op else "", f"in layer {layer}" if layer else ""]
    text = " ".join(part for part in parts if part)
    if incident.values:
        text += f" ({incident.values})" if text else incident.values
    if line:
        text += f", at {line}" + (f": {code.strip()}" if code else "")
    if place.text("dtype") in ("float16", "bfloat16"):
        text += f", in {place.text('dtype')}"
    return text
