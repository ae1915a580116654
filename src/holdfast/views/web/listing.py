"""The rows of the list of runs, from what stands at the two ends of each record: reading all of it would take seconds."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.journal import Journal, NewerJournal
from holdfast.masking import masked_command
from holdfast.recorded_events import Exit
from holdfast.views.web.sections import seconds
from holdfast.vocabulary import Event

Alive = Callable[[Sequence[Event]], bool]  # whether a process that these starts name still runs


def rows(runs: Sequence[Path], alive: Alive) -> list[dict[str, Any]]:
    """Newest first."""
    return [row(run, alive) for run in reversed(runs)]


def row(run: Path, alive: Alive) -> dict[str, Any]:
    try:
        events = Journal(run / "journal").outer_events()
    except (NewerJournal, OSError) as error:
        return {"run": run.name, "outcome": "unknown", "started": "", "took": "", "command": str(error)}
    starts = [event for event in events if event.kind in ("run.start", "attempt.start")]
    start = next((event for event in starts if event.kind == "run.start"), None)
    end = next((event for event in reversed(events) if event.kind == Exit.KIND), None)
    if end is not None:
        outcome = "completed" if Exit.of(end).code == 0 else "failed"
    else:
        outcome = "running" if alive(starts) else "unknown"
    until = end.at if end is not None else time.time() if outcome == "running" else None
    return {
        "run": run.name,
        "outcome": outcome,
        "started": time.strftime("%Y-%m-%d %H:%M", time.localtime(start.at)) if start else "",
        "took": seconds(until - start.at) if start and until is not None else "",
        "command": shlex.join(masked_command([*map(str, start.data.get("command", ()))])) if start else "",
    }
