"""Judges what `holdfast why` said against the label, and prints the score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import training
from .case import CANNOT_TELL, STALLED, Case
from .program import Ran

RIGHT, WRONG, UNSURE, FALSE_ALARM, NOT_STAGED = "right", "wrong", "cannot tell", "false alarm", "not staged"
CONFIDENT = 0.8
LEAST_RIGHT, MOST_CONFIDENTLY_WRONG = 0.95, 0.02
NO_ANSWER = "no answer"
KILLED = 137  # a program that stands still is ended so
HEADINGS = ("case", "program", "framework", "expected", "got", "conf", "verdict", "s", "note")


@dataclass(frozen=True, slots=True)
class Result:
    case: str
    program: str
    framework: str
    expected: str
    got: str
    verdict: str
    seconds: float = 0.0
    confidence: float | None = None
    note: str = ""
    why_seconds: float | None = None
    warned_after: float | None = None
    stalled_after: float | None = None  # seconds until `why` said that a program which stands still does

    @property
    def confidently_wrong(self) -> bool:
        """A cause was named, with confidence, and it is not the one."""
        named_another = self.got not in (CANNOT_TELL, *self.expected.split(" | "))
        return named_another and self.confidence is not None and self.confidence >= CONFIDENT


@dataclass(frozen=True, slots=True)
class Totals:
    right: int
    wrong: int
    cannot_tell: int
    confidently_wrong: int
    false_alarms: int
    healthy: int
    healthy_right: int
    not_staged: int

    @property
    def failing(self) -> int:
        return self.right + self.wrong + self.cannot_tell

    @property
    def share_right(self) -> float:
        return self.right / self.failing if self.failing else 1.0

    @property
    def share_confidently_wrong(self) -> float:
        return self.confidently_wrong / self.failing if self.failing else 0.0

    @property
    def passed(self) -> bool:
        """The marks are reached by what ran. What could not be staged is no success: something must have run."""
        named = self.share_right >= LEAST_RIGHT and self.share_confidently_wrong <= MOST_CONFIDENTLY_WRONG
        return named and self.healthy_right == self.healthy and self.failing + self.healthy > 0


def judge(case: Case, ran: Ran, *, healthy: bool, beside: Ran | None = None) -> Result:
    """`beside`: the same healthy program without Holdfast, where the two must end with the same weights."""
    got, confidence = _named_cause(case, ran.answer)
    complaints = _complaints(case, ran, healthy)
    if beside is not None:
        complaints += training.changed(ran.stdout, beside.stdout)
    if healthy:
        alarmed = got not in (CANNOT_TELL, NO_ANSWER) or bool(_holdfast_lines(ran.stderr))
        verdict = FALSE_ALARM if alarmed else WRONG if complaints else RIGHT
    elif ran.answer is not None and got == CANNOT_TELL and case.accept:
        verdict = UNSURE
    else:
        named_right = got in (case.accept or (CANNOT_TELL,))
        verdict = RIGHT if named_right and not complaints else WRONG
    return Result(
        case=case.name,
        program=_program(healthy),
        framework=case.framework,
        expected=CANNOT_TELL if healthy else case.expected,
        got=got,
        verdict=verdict,
        seconds=ran.seconds,
        confidence=confidence,
        note="; ".join([*complaints, *_others_noticed(case, ran.answer)]),
        why_seconds=ran.why_seconds,
        warned_after=ran.warned_after,
        stalled_after=ran.stalled_after,
    )


def judge_bare(case: Case, ran: Ran, *, healthy: bool, beside: Ran | None = None) -> Result:
    """Whether the case itself behaves as labelled, with no Holdfast in front of it; twice the same where weights count."""
    wanted = (0,) if healthy else (KILLED,) if case.hang is not None else case.exit_code
    complaints = [ran.trouble] if ran.trouble else []
    if case.prints not in ran.stdout:
        complaints.append(f"did not print {case.prints!r}")
    if case.numerics:
        complaints += training.not_as_labelled(case, ran.stdout, healthy=healthy)
    if beside is not None:
        complaints += training.changed(ran.stdout, beside.stdout)
    return Result(
        case=case.name,
        program=_program(healthy),
        framework=case.framework,
        expected=f"exit {wanted}",
        got="timeout" if ran.exit_code is None else f"exit {ran.exit_code}",
        verdict=RIGHT if ran.exit_code in wanted and not complaints else WRONG,
        seconds=ran.seconds,
        note="; ".join(complaints),
    )


def not_staged(case: Case, why: str, *, healthy: bool) -> Result:
    expected = CANNOT_TELL if healthy else case.expected
    return Result(case.name, _program(healthy), case.framework, expected, "", NOT_STAGED, note=why)


def totals(results: Sequence[Result]) -> Totals:
    failing = [result for result in results if result.program == _program(healthy=False)]
    healthy = [result for result in results if result not in failing and result.verdict != NOT_STAGED]

    def count(some: Sequence[Result], verdict: str) -> int:
        return sum(result.verdict == verdict for result in some)

    return Totals(
        right=count(failing, RIGHT),
        wrong=count(failing, WRONG),
        cannot_tell=count(failing, UNSURE),
        confidently_wrong=sum(result.confidently_wrong for result in failing),
        false_alarms=count(healthy, FALSE_ALARM),
        healthy=len(healthy),
        healthy_right=count(healthy, RIGHT),
        not_staged=count(results, NOT_STAGED),
    )


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    counted = totals(results)
    return {
        "passed": counted.passed,
        "totals": asdict(counted),
        "results": [asdict(result) for result in results],
    }


def table(results: Sequence[Result]) -> str:
    rows = [HEADINGS, *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths[:-1]))
    return "\n".join([*lines, "", _summary(totals(results))])


def _row(result: Result) -> tuple[str, ...]:
    return (
        result.case,
        result.program,
        result.framework,
        result.expected,
        result.got,
        "" if result.confidence is None else f"{result.confidence:.2f}",
        result.verdict,
        f"{result.seconds:.1f}",
        result.note,
    )


def _summary(counted: Totals) -> str:
    return (
        f"failing programs: {counted.right} of {counted.failing} right, {counted.wrong} wrong, {counted.cannot_tell} cannot tell, "
        f"{counted.confidently_wrong} confidently wrong (>= {CONFIDENT})\n"
        f"healthy programs: {counted.healthy_right} of {counted.healthy} right, "
        f"false alarms {counted.false_alarms}/{counted.healthy}\n"
        f"programs not staged: {counted.not_staged}"
    )


def _program(healthy: bool) -> str:
    return "healthy" if healthy else "failing"


def _named_cause(case: Case, answer: dict[str, Any] | None) -> tuple[str, float | None]:
    if answer is None:
        return NO_ANSWER, None
    cause = _told(case, answer)
    return (CANNOT_TELL, None) if cause is None else (cause["id"], cause["confidence"])


def _told(case: Case, answer: dict[str, Any]) -> dict[str, Any] | None:
    """The cause; of a program that trains badly and ends by itself, the worst of what was noticed."""
    causes = [answer.get("cause"), *(answer.get("noticed", ()) if case.numerics else ())]
    return next((cause for cause in causes if cause is not None), None)


def _others_noticed(case: Case, answer: dict[str, Any] | None) -> list[str]:
    """Told and not judged: what comes after the first place."""
    noticed = answer.get("noticed", ()) if case.numerics and answer is not None else ()
    told = None if answer is None else _told(case, answer)
    others = [cause["id"] for cause in noticed if cause is not told]
    return [f"also noticed: {', '.join(others)}"] if others else []


def _complaints(case: Case, ran: Ran, healthy: bool) -> list[str]:
    """Everything that is not as it should be, beside the cause itself."""
    complaints = [ran.trouble] if ran.trouble else []
    wanted_codes, wanted_outcome = ((0,), ("completed",)) if healthy else _wanted_end(case)
    if case.hang is not None and not healthy:
        wanted_outcome = (STALLED, "stopped", "failed")  # afterwards: it was asked to end, and has a cause
        complaints += _missing_at_standstill(case, ran.answer_at_standstill)
    if case.continues and case.policy == "protect" and not healthy:
        complaints += training.not_fallen(ran.stdout)
    if ran.exit_code is not None and wanted_codes and ran.exit_code not in wanted_codes:
        complaints.append(f"exit code {ran.exit_code}, not {' or '.join(map(str, wanted_codes))}")
    if ran.answer is None and not ran.trouble:
        complaints.append("why gave no answer")
    if ran.answer is not None and ran.answer.get("outcome") not in wanted_outcome:
        complaints.append(f"outcome {ran.answer.get('outcome')}, not {' or '.join(wanted_outcome)}")
    if case.prints not in ran.stdout:
        complaints.append(f"the script's {case.prints!r} did not come through")
    if case.warns and not healthy and not any(case.warns in line for line in _holdfast_lines(ran.stderr)):
        complaints.append(f"no warning has {case.warns!r}: {'; '.join(_holdfast_lines(ran.stderr)) or 'none came'}")
    if healthy:
        complaints += [f"stderr: {line}" for line in _holdfast_lines(ran.stderr)]
    elif ran.answer is not None:
        complaints += _missing_evidence(case, ran.answer)
    return complaints


def _wanted_end(case: Case) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The exit codes (none: any) and outcomes of the failing program."""
    if not case.numerics or case.policy != "protect":
        return case.exit_code, (case.outcome,)
    if case.continues:
        return (0,), ("completed", "recovered")
    return (), ("completed", "recovered", "failed", "stopped")  # it may be stopped where nothing helps


def _missing_at_standstill(case: Case, answer: dict[str, Any] | None) -> list[str]:
    """What `why` should have said while the program stood still."""
    named, _ = _named_cause(case, answer)
    if named not in case.accept:
        return [f"{named} was named while it stood still"]
    return [] if answer is None else _missing_evidence(case, answer)


def _holdfast_lines(stderr: str) -> list[str]:
    return [line.strip() for line in stderr.splitlines() if line.strip().startswith("holdfast:")]


def _missing_evidence(case: Case, answer: dict[str, Any]) -> list[str]:
    cause = _told(case, answer)
    if cause is None:
        return []
    texts = [evidence["text"] for evidence in cause["evidence"]]
    missing = [wanted for wanted in case.evidence.contains if not any(wanted in text for text in texts)]
    patterns = [*case.evidence.matches, *_step_patterns(case.evidence.step)]
    missing += [pattern for pattern in patterns if not any(re.search(pattern, text) for text in texts)]
    if case.evidence.line:
        numbers = "|".join(map(str, case.evidence_line_numbers()))
        named = re.compile(rf'train\.py(:|"?, line )({numbers})\b')
        if not any(named.search(text) for text in texts):
            missing.append(f"train.py:{numbers}")
    return [f"no evidence line has {wanted!r}" for wanted in missing]


def _step_patterns(step: int | None) -> list[str]:
    return [] if step is None else [rf"\b(?:[Ss]tep|[Bb]atch) (?:{step - 1}|{step}|{step + 1})\b"]
