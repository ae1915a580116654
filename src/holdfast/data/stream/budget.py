"""How much memory the stream may use, and what that is in rows and batches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from holdfast.data.stream.source import CannotStream
from holdfast.inside.headroom import left
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.units import amount, bytes_of

# Not a share of what is free at the moment: the order of shuffled rows depends on it, and must be the same in the next attempt.
DEFAULT_BYTES = 256 << 20
LEAST_BATCHES = 6  # two windows of one batch each, one that waits, one being made, one with the user, one being decoded
WINDOW_SHARE, WAITING_SHARE = 3 / 8, 1 / 8  # of the budget: each of two windows, and the batches that wait
MOST_WAITING = 16
TIGHT = 2  # where less than so many budgets are left, no more than one batch waits


class Sizes(NamedTuple):
    window_rows: int
    waiting: int  # batches


def sizes(budget: int | str | None, batch: int, row_bytes: int, workers: int = 1) -> Sizes:
    batch_bytes = max(1, batch * row_bytes)
    given = bytes_of(budget) if isinstance(budget, str) else budget
    whole = given if given is not None else max(DEFAULT_BYTES, LEAST_BATCHES * batch_bytes)
    room = room_bytes()
    if LEAST_BATCHES * batch_bytes > min(whole, room):
        raise CannotStream(
            f"a batch of {batch} rows is {amount(batch_bytes, 'bytes')}, and {LEAST_BATCHES} of them do not fit into "
            f"{amount(min(whole, room), 'bytes')}: make the batch smaller"
        )
    share = whole // max(1, workers)
    windows = max(1, int(share * WINDOW_SHARE) // batch_bytes)
    waiting = max(1, min(MOST_WAITING, int(share * WAITING_SHARE) // batch_bytes))
    return Sizes(windows * batch, 1 if room < TIGHT * whole else waiting)


def room_bytes() -> float:
    """Infinite where nothing says."""
    root = Path("/")
    found = hierarchy_of("memory", membership(root, os.getpid()), root, os.getpid())
    groups = [{"folder": folder, "version": found.version} for folder in found.folders] if found is not None else []
    room = left(groups)
    return float("inf") if room is None else room.bytes
