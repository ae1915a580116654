"""Batches on their way to the model: labels that it has no output for, and parts whose type or number of axes changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.recorded_events import WentOn
from holdfast.vocabulary import Detail, Event, Evidence, Finding, Window
from holdfast.windows import Reads, reads

LABELS, FORM = "data.bad_labels", "data.form_changed"


@dataclass(frozen=True, slots=True)
class Thresholds:
    shown: int = 5  # batches that are told of


@reads(Reads(events=(LABELS, WentOn.KIND)))
def find_labels(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """While the run goes on: only where the loss is known to be given these very numbers."""
    return _labels([event for event in window.events(LABELS) if event.data.get("sure")], _left_out(window), thresholds)


@reads(Reads(events=(LABELS, WentOn.KIND)))
def find_labels_at_the_end(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Of a run that failed: what was not left out, also where it may have been changed on its way."""
    left_out = {WentOn.of(one).step for one in _left_out(window)}
    return _labels([one for one in window.events(LABELS) if one.data.get("step") not in left_out], [], thresholds)


def _left_out(window: Window) -> list[Event]:
    return [one for one in window.events(WentOn.KIND) if WentOn.of(one).was == WentOn.LABELS]


def _labels(events: Sequence[Event], went_on: Sequence[Event], thresholds: Thresholds) -> Finding | None:
    if not events:
        return None
    told = [Evidence(_labels_in_words(event), "data", event.at) for event in events[: thresholds.shown]]
    if went_on:
        told.append(Evidence("such rows were left out before they reached the model", "telemetry", went_on[0].at))
    headline = "Some rows have labels that the model has no output for" + ("; they were left out" if went_on else "")
    sure = any(event.data.get("sure") for event in events)
    rows = [row for event in events for row in event.data.get("indices") or ()]
    return Finding(
        "label-out-of-range",
        0.92 if sure else 0.6,
        tuple(told),
        {Detail.ROW: rows[0]} if rows else {},
        headline=headline,
        subject=WentOn.SUBJECT if went_on else "",
    )


def _labels_in_words(event: Event) -> str:
    data = event.data
    rows, indices, values = (list(data.get(name) or ()) for name in ("rows", "indices", "values"))
    count, classes = int(data.get("row_count") or len(rows)), int(data.get("classes") or 0)
    text = (
        f"the batch of step {data.get('step')} has {count} {'row' if count == 1 else 'rows'} of {data.get('of_rows')} "
    )
    text += f"labelled {_listed(values)} (row {_listed(rows)} of it" if rows else "with labels out of range ("
    text += f"; {_listed(indices)} of the data set)" if indices else ")"
    return f"{text}; the model has {classes} outputs, so labels go from 0 to {classes - 1}"


@reads(Reads(events=(FORM,)))
def find_form(window: Window) -> list[Finding]:
    """Evidence beside an error, and a hint where there is none: nothing says that it does harm."""
    found = []
    for what, cause in (("dtype", "dtype-mismatch"), ("rank", "shape-mismatch")):
        events = [event for event in window.events(FORM) if event.data.get("what") == what]
        if events:
            told = tuple(Evidence(_form_in_words(event), "data", event.at) for event in events[:3])
            found.append(Finding(cause, 0.45, told))
    return found


def _form_in_words(event: Event) -> str:
    data = event.data
    changed = f"has {data.get('now')} where those before had {data.get('was')}"
    if data.get("what") == "dtype":
        changed = f"is {data.get('now')} where those before were {data.get('was')}"
    return f"part {data.get('name')} of the batch of step {data.get('step')} {changed}"


def _listed(items: Sequence[object]) -> str:
    return ", ".join(str(item) for item in items[:5]) + (", …" if len(items) > 5 else "")
