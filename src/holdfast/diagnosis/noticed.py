"""What was found in a run that goes on or has finished: it ended no run, and a person may want to mend it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.causes import CAUSES, SAYS_MORE
from holdfast.diagnosis.event_clues import card_faults
from holdfast.diagnosis.plain_text import read_lines
from holdfast.diagnosis.reading.log import clues_of
from holdfast.diagnosis.reading.ranking import of_the_courses
from holdfast.vocabulary import Finding, Window

SURE = 0.5
LAST_BYTES = 256 << 10  # of a stream: what it says of itself it says again and again


def noticed(window: Window, while_running: Sequence[Finding]) -> list[Finding]:
    """Worst first: what would end a run before what slows it, and the surer one first. Each cause once, as told most surely,
    and none that another one of them explains."""
    told = [*while_running, *card_faults(window), *_in_output(window)]
    latest: dict[str, Finding] = {}
    for finding in told:
        before = latest.get(finding.cause)
        if (
            finding.confidence >= SURE
            and not _was_wrong(finding)
            and (before is None or finding.confidence >= before.confidence)
        ):
            latest[finding.cause] = finding
    explained = {lesser for cause in latest for lesser in SAYS_MORE.get(cause, ())}
    kept = [finding for cause, finding in latest.items() if cause not in explained]
    return sorted(kept, key=lambda finding: (CAUSES[finding.cause].slows, -finding.confidence))


def _was_wrong(finding: Finding) -> bool:
    """A job that went on was neither deadlocked nor in a loop without end. A disk or peer may have been slow, and be so again."""
    return finding.standstill is not None and finding.cause != "io-stall"


def _in_output(window: Window) -> list[Finding]:
    """What only slows a run, and a loss, gradient or loss scale that went wrong.

    Not what it was set up with, nor an error that was handled; memory and the end of the data are known better by telemetry:
    Keras 3.15 warns of data that ended also in healthy runs.
    """
    found: list[Finding] = []
    for stream in window.streams():
        lines = read_lines(window.output(stream)[-LAST_BYTES:])
        said = [clue.finding for clue in clues_of(lines) if clue.kind == "line"]
        found += [f for f in said if CAUSES[f.cause].slows]
        found += of_the_courses(lines, raised=True)
    return [finding for finding in found if not CAUSES[finding.cause].of_the_installation]
