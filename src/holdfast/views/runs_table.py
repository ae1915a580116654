"""The runs recorded here, a line each."""

from __future__ import annotations

import shlex
from typing import Any

from holdfast.masking import masked_command
from holdfast.recorded_events import Exit
from holdfast.views.safe_text import safe
from holdfast.views.why_json import stamp
from holdfast.vocabulary import Diagnosis, Window

COLUMNS = ("run", "outcome", "cause", "exit", "command")


def as_row(run: str, window: Window, diagnosis: Diagnosis) -> dict[str, Any]:
    start = next(iter(window.events("run.start")), None)
    end = window.event(Exit.KIND)
    return {
        "run": run,
        "outcome": diagnosis.outcome,
        "cause": diagnosis.cause.id if diagnosis.cause else None,
        "exit": Exit.of(end).code if end else None,
        "started": stamp(start.at) if start else None,
        "seconds": round(end.at - start.at, 1) if start and end else None,
        "command": shlex.join(masked_command(start.data["command"])) if start else "",
    }


def as_table(rows: list[dict[str, Any]], width: int) -> str:
    shown = [
        ["" if row[column] is None else safe(str(row[column])).replace("\n", " ") for column in COLUMNS] for row in rows
    ]
    widths = [max(len(line[i]) for line in [list(COLUMNS), *shown]) for i in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)) for line in [list(COLUMNS), *shown]
    ]
    return "\n".join(line.rstrip()[:width] for line in lines)
