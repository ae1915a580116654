"""Whether there is memory for a training step that is run once more to be looked at: it comes on top of what training holds, and
one that is run operation by operation takes more than the framework's own.

Samples of 64 rows ended a net of images, which trained in twelve pieces of 8 rows, four times in a row.
"""

from __future__ import annotations

from ..headroom import left
from ..held_memory import held_by_this_process
from ..telemetry import Recorder

PART = 4  # of the rows that training runs at once, where memory is short: with its gaps and copies less than training takes


def is_ample(recorder: Recorder) -> bool:
    """As much again as this process holds is free: all that a step takes, with what a second one adds, is less than that."""
    if recorder.pieces > 1:
        return False
    held, budget = held_by_this_process(), (recorder.settings.get("rescue") or {}).get("host_budget_bytes")
    rooms = [budget - held] if budget else []
    found = left(recorder.settings.get("groups"))
    if found is not None:
        rooms.append(found.bytes)
    return all(room >= held for room in rooms)


def rows_beside(recorder: Recorder, rows: int) -> int:
    """Of a batch, that may be run beside the training; 0: none."""
    return rows if is_ample(recorder) else rows // (PART * recorder.pieces)
