"""What the script's arrays were when an error about data ended it: which one differs from those before, and where its largest value is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.vocabulary import Evidence, Finding, Window

EVENT, BATCH, SETUP = "data.at_failure", "train.batch", "numerics.setup"
OF_DATA = frozenset({"shape-mismatch", "dtype-mismatch", "label-out-of-range", "index-out-of-range"})
RANGES = frozenset({"label-out-of-range", "index-out-of-range"})
MOST = 4  # variables that are told


def with_batch(window: Window, findings: Iterable[Finding]) -> list[Finding]:
    found = list(findings)
    if not any(finding.cause in OF_DATA for finding in found):
        return found
    event = window.event(EVENT)
    if event is None:
        return found
    return [
        replace(one, evidence=(*one.evidence, *_told(window, event.data, event.at, one.cause)))
        if one.cause in OF_DATA
        else one
        for one in found
    ]


def _told(window: Window, data: Mapping[str, Any], at: float, cause: str) -> list[Evidence]:
    variables = list(data.get("variables", ()))
    if cause in RANGES:
        variables = [one for one in variables if "max" in one] or variables
    step = int(data.get("step", 0))
    where = f"in step {step}" if step > 1 else "in the first step"
    line = f" ({data['line']})" if data.get("line") else ""
    told = [f"{where}{line}: " + "; ".join(_words(one) for one in variables[:MOST])]
    told += _another_shape(window, variables)
    if cause == "label-out-of-range":
        told += _outputs(window)
    return [Evidence(text, "data", at) for text in told]


def _words(variable: Mapping[str, Any]) -> str:
    text = f"{variable['name']} is {_shape(variable['shape'])} {variable['dtype']}"
    if "max" in variable:
        text += f", from {variable['min']} to {variable['max']} (row {variable['row_of_max']})"
    return text


def _shape(sizes: Sequence[int]) -> str:
    return "×".join(str(size) for size in sizes) or "one value"


def _another_shape(window: Window, variables: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the batches before had all one shape, and an array of as many dimensions and rows has another."""
    before = [tuple(event.data["shape"]) for event in window.events(BATCH) if len(event.data.get("shape", ())) > 1]
    if not before or len({shape[1:] for shape in before}) != 1:
        return []
    usual = before[-1]
    for one in variables:
        shape = tuple(one["shape"])
        if len(shape) == len(usual) and shape[1:] != usual[1:] and shape[0] == usual[0] and "max" not in one:
            return [f"the batches before were {_shape(usual)}: {one['name']} of this one is shaped otherwise"]
    return []


def _outputs(window: Window) -> list[str]:
    setup = window.event(SETUP)
    units = (setup.data.get("last") or {}).get("units") if setup is not None else None
    return [f"the last layer has {units} outputs, so labels go from 0 to {int(units) - 1}"] if units else []
