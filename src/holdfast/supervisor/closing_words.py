"""Three lines at the end of a run in which something happened: what, what was done about it, and where there is more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from holdfast.recorded_events import MicroBatches, RecordedAction, RecordedDecision, WentOn
from holdfast.vocabulary import NOT_WORKING, DecisionKind, Diagnosis, Event, Policy

NOT_AGAIN = "; not started again: "
NOTHING_TO_START = "nothing to start again"
HELD, STOPPED = "guard:hold:", "guard:stop:"  # how the keys of the guard's actions begin
HELD_WORDS = "held the job while memory was short"
LINE_CHARACTERS = 200


class Happenings:
    """Hears every event of a run and keeps what its closing words are made of."""

    def __init__(self) -> None:
        self._noticed: dict[str, str] = {}
        self._restarts: list[str] = []
        self._ended: list[str] = []
        self._guard: dict[str, int] = {HELD: 0, STOPPED: 0}
        self._went_on = 0
        self._was = ""  # what was wrong with the first step that was gone on after
        self._pieces = 1
        self._not_again = ""

    def take(self, event: Event) -> None:
        if event.kind == RecordedDecision.KIND:
            self._decided(RecordedDecision.of(event))
        elif event.kind == RecordedAction.KIND:
            key = RecordedAction.of(event).key
            for begin in self._guard:
                self._guard[begin] += key.startswith(begin)
        elif event.kind == WentOn.KIND:
            self._went_on += 1
            self._was = self._was or WentOn.of(event).was
        elif event.kind == MicroBatches.KIND:
            self._pieces = max(self._pieces, MicroBatches.of(event).k)

    def _decided(self, decision: RecordedDecision) -> None:
        if decision.key.startswith(NOT_WORKING):  # about Holdfast, and said already
            return
        if decision.decision == DecisionKind.WARN:
            self._noticed[decision.key] = decision.text
        elif decision.decision == DecisionKind.RESTART:
            self._restarts.append(decision.text.partition(";")[0])
        elif decision.decision == DecisionKind.END:
            self._ended.append(decision.text)
        elif NOT_AGAIN in decision.text:
            self._not_again = decision.text.partition(NOT_AGAIN)[2].replace(NOTHING_TO_START, "")

    def lines(self, policy: Policy, verdict: Diagnosis | None, trained: bool, more: Sequence[str]) -> list[str]:
        """`verdict` of a run that did not finish; `more`: the command that tells it."""
        deeds, held = (
            list(self._deeds()),
            [HELD_WORDS] if self._guard[HELD] else [],
        )  # held for moments: part of being near a limit
        failed = verdict is not None and verdict.outcome != "stopped" and trained
        if policy == Policy.OBSERVE or not (failed or self._noticed or deeds):
            return []
        what = self._finished() if verdict is None else _failed(verdict)
        done = self._done([*deeds, *held], policy, failed)
        return [f"holdfast: {_short(line)}" for line in (what, done)] + [f"holdfast: for more: {shlex.join(more)}"]

    def _finished(self) -> str:
        told = [*self._survived(), *self._told()] or ["there was trouble on the way"]
        return "; ".join(["finished", *told])

    def _survived(self) -> Iterator[str]:
        if self._restarts:
            yield f"before that: {self._restarts[-1]}"
        elif self._pieces > 1:
            yield "its batches did not fit in memory"
        elif self._went_on:
            yield f"{_times(self._went_on, 'a step was', 'steps were')} {self._was}"

    def _told(self) -> Iterator[str]:
        if self._noticed:
            first, *others = self._noticed.values()
            yield f"noticed: {first}" + (f" (and {len(others)} more)" if others else "")

    def _done(self, deeds: Sequence[str], policy: Policy, failed: bool) -> str:
        again = f"not started again: {self._not_again}" if failed and self._not_again else ""
        if deeds:
            return "; ".join([*deeds, *([again] if again else [])])
        if policy == Policy.ADVISE:
            return "nothing was done about it: --policy advise only tells"
        return again or "nothing was done about it"

    def _deeds(self) -> Iterator[str]:
        if self._restarts:
            yield f"started again {'once' if len(self._restarts) == 1 else f'{len(self._restarts)} times'}"
        if self._pieces > 1:
            yield f"ran steps in {self._pieces} micro-batches"
        if self._went_on:
            yield f"went on after {_times(self._went_on, 'a bad step', 'bad steps')}"
        if self._guard[STOPPED]:
            yield "stopped what took the memory"
        yield from self._ended[-1:]


def _failed(verdict: Diagnosis) -> str:
    if verdict.cause is None:
        return verdict.summary or "the run failed"
    sure = "" if verdict.cause.level == "confident" else " (probably)"
    return f"{verdict.cause.title.rstrip('.')}{sure}"


def _times(number: int, one: str, many: str) -> str:
    return one if number == 1 else f"{number} {many}"


def _short(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 1]}…"
