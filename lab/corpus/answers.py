"""What `why` says of each captured text, beside what it should say."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.verdict import diagnose_log

from .captured import Capture

CONFIDENTLY = 0.8  # an answer this sure that is wrong is the worst failure there is


@dataclass(frozen=True, slots=True)
class Answer:
    capture: Capture
    said: str  # empty: no cause was named
    confidence: float = 0.0

    @property
    def right(self) -> bool:
        """Of a failure its cause, of a healthy output nothing."""
        return self.said in self.capture.causes if self.capture.causes else not self.said

    @property
    def false_alarm(self) -> bool:
        return bool(self.said) and not self.capture.causes

    @property
    def confidently_wrong(self) -> bool:
        return bool(self.said) and not self.right and self.confidence >= CONFIDENTLY


def answer(capture: Capture) -> Answer:
    """As for a log from elsewhere: nothing but the text is known."""
    cause = diagnose_log(excerpt(io.BytesIO(capture.text.encode()))).cause
    return Answer(capture, "") if cause is None else Answer(capture, cause.id, cause.confidence)


def answers(captures: Sequence[Capture]) -> list[Answer]:
    return [answer(capture) for capture in captures]


@dataclass(frozen=True, slots=True)
class Counts:
    failing: int
    right: int
    wrong: int
    no_answer: int
    healthy: int
    false_alarms: int
    confidently_wrong: int  # of both kinds

    def __str__(self) -> str:
        return (
            f"{self.right} of {self.failing} failing outputs right ({_share(self.right, self.failing)}), {self.wrong} wrong, "
            f"{self.no_answer} without an answer; {self.false_alarms} false alarms on {self.healthy} healthy outputs; "
            f"{self.confidently_wrong} confidently wrong (>= {CONFIDENTLY})"
        )


def counts(found: Sequence[Answer]) -> Counts:
    failing = [one for one in found if one.capture.causes]
    right = sum(one.right for one in failing)
    none = sum(not one.said for one in failing)
    return Counts(
        failing=len(failing),
        right=right,
        wrong=len(failing) - right - none,
        no_answer=none,
        healthy=len(found) - len(failing),
        false_alarms=sum(one.false_alarm for one in found),
        confidently_wrong=sum(one.confidently_wrong for one in found),
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
