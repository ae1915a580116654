"""Clues of one text -> findings, one of each cause, for `weighing` to rank beside all others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.causes import GENERIC
from holdfast.diagnosis.plain_text import Line
from holdfast.diagnosis.reading.combined_clues import together
from holdfast.diagnosis.reading.log import Clue
from holdfast.diagnosis.reading.machine_listings import of_the_processes
from holdfast.diagnosis.reading.printed_figures import (
    of_a_loss_below_zero,
    of_a_loss_that_is_zero,
    of_memory_that_grows,
    of_steps_that_overflow,
    of_the_gradients,
    of_the_loss,
    of_the_loss_scale,
    of_the_waiting,
)
from holdfast.diagnosis.reading.stacks import of_the_threads
from holdfast.diagnosis.weighing import SURE, Moment
from holdfast.vocabulary import Evidence, Finding

MOST = 0.97
COURSES = (
    of_the_loss_scale, of_steps_that_overflow, of_the_gradients, of_the_loss, of_a_loss_that_is_zero, of_a_loss_below_zero
)  # fmt: skip
WITHOUT_AN_END = (
    of_memory_that_grows,
    of_the_threads,
    of_the_waiting,
    of_the_processes,
)  # they slow or stop a run, and raise nothing


def findings_of(clues: Sequence[Clue], lines: Sequence[Line], only_the_text: bool = True) -> list[Finding]:
    """Of each cause one, not ranked. `only_the_text`: nothing else is known of the run, so that what is usual counts."""
    causes = dict.fromkeys(clue.finding.cause for clue in clues)
    merged = {cause: _merged([clue for clue in clues if clue.finding.cause == cause]) for cause in causes}
    together(merged, clues, lines, only_the_text)
    if not any(finding.confidence >= 0.6 for cause, finding in merged.items() if cause not in GENERIC):
        raised = any(clue.kind != "line" for clue in clues)
        for finding in of_the_courses(lines, raised):
            if finding.confidence > merged.get(finding.cause, finding).confidence or finding.cause not in merged:
                merged[finding.cause] = finding
    return list(merged.values())


def first_seen(clues: Sequence[Clue]) -> dict[str, Moment]:
    causes = {clue.finding.cause for clue in clues}
    return {cause: min(clue.order() for clue in clues if clue.finding.cause == cause) for cause in causes}


def of_the_courses(lines: Sequence[Line], raised: bool) -> list[Finding]:
    """What figures and listings say together. `raised`: something ended the run, so what only slows one is not asked for."""
    return [finding for course in (COURSES if raised else (*COURSES, *WITHOUT_AN_END)) for finding in course(lines)]


def _merged(same: Sequence[Clue]) -> Finding:
    """Ranks that repeat each other make nothing surer; an exception and a line of another origin do."""
    best = max(same, key=lambda clue: (clue.finding.confidence, -clue.number))
    kinds = {clue.kind for clue in same if clue.finding.confidence >= SURE}
    confidence = min(MOST, best.finding.confidence + (0.03 if len(kinds) > 1 else 0.0))
    evidence = list(_placed(best))
    for clue in sorted(same, key=lambda clue: -clue.finding.confidence):
        if len(evidence) < 6 and clue is not best and clue.finding.confidence >= 0.3:
            evidence += [
                item for item in _placed(clue)[:1] if _said(item.text) not in {_said(e.text) for e in evidence}
            ]
    return replace(best.finding, confidence=confidence, evidence=tuple(evidence))


def _said(text: str) -> str:
    return re.sub(r"^line \d+(?: \[[^\]]*\])?: |\d", "", text)


def _placed(clue: Clue) -> tuple[Evidence, ...]:
    """With the line's number, and whose it was, at the first of its evidence."""
    who = f" [{clue.who}]" if clue.who else ""
    first, *rest = clue.finding.evidence
    source = first.source if first.source == "kernel-log" else "log"
    placed = replace(first, text=f"line {clue.number}{who}: {first.text}", source=source, at=clue.at)
    return (placed, *(replace(item, source=source, at=clue.at) for item in rest))
