from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind
from holdfast.causes.shared.recipes import STACKS

CAUSE = CauseRecord(
    id="infinite-loop",
    family="process",
    title="A loop does not end",
    meaning="A thread runs all the time and no step comes to its end. The frames it is in say which loop.",
    sure="No progress, one core busy, and the same frames in every look.",
    restart=RestartAdvice(RestartKind.ONCE_IF_KILLED, "in a loop that did not end"),
    recipes=STACKS,
)
