"""Of several ranks one stopped first: killed, or finished while the others had batches left, or it did not come.

What one raised, or how it crashed, is read from what it printed: `diagnosis/elastic`.
"""

from __future__ import annotations

from holdfast.detectors.endings import KERNEL_KILLS, kernel_kills
from holdfast.fleet.findings import finding_of
from holdfast.fleet.first_stop import FIRST_READS, first_stop
from holdfast.vocabulary import Finding, Window
from holdfast.windows import reads


@reads(FIRST_READS, KERNEL_KILLS)
def find(window: Window) -> Finding | None:
    first = first_stop(window)
    if first is None:
        return None
    kills = [(kill.constraint, kill.evidence) for kill in kernel_kills(window) if kill.pid == first.story.joined.pid]
    return finding_of(first, kills)
