"""What happened in a run, a line each for people: what was decided and done, checkpoints, attempts, signals, the end.

One set of words for `why`, the terminal, the page and the report. The findings themselves are not read back: what was told of
them is in the decisions.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.masking import masked_command
from holdfast.recorded_events import Exit, MicroBatches, RecordedAction, RecordedDecision, WentOn
from holdfast.stack_snapshots import RecordedStacks
from holdfast.views.log_text import stacks_said
from holdfast.views.safe_text import safe
from holdfast.vocabulary import DecisionKind, Event, signal_name

Weight = Literal["note", "warn", "bad", "done"]
MOST_MOMENTS = 2000  # the latest; a run of weeks has thousands of checkpoints, which are told as one
# An action that ended so adds nothing to its decision; an attempt that was started has an event of its own.
QUIET_RESULTS = ("said", "recorded", "asked", "started as attempt")
WEIGHTS: dict[str, Weight] = {
    DecisionKind.WARN: "warn",
    DecisionKind.RESTART: "warn",
    DecisionKind.STOP: "bad",
    DecisionKind.END: "bad",
}


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    text: str  # one line, safe for a terminal
    weight: Weight
    kind: str = ""  # of the event
    times: int = 1  # that it happened in a row; `at` and `text` are of the last


def timeline(events: Iterable[Event]) -> list[Moment]:
    """Oldest first."""
    told = Timeline()
    for event in events:
        told.take(event)
    return told.moments()


class Timeline:
    """For a run that goes on: takes events one by one."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque(maxlen=MOST_MOMENTS)
        self._decided: dict[str, str] = {}  # the text of the last decision, by its key

    def take(self, event: Event) -> None:
        said = self._said(event)
        if said is None:
            return
        text, weight = " ".join(safe(said[0]).split()), said[1]
        moment = Moment(event.at, text, weight, event.kind)
        if self._moments and _repeats(moment, self._moments[-1]):
            moment = replace(moment, times=self._moments.pop().times + 1)
        self._moments.append(moment)

    def moments(self) -> list[Moment]:
        return sorted(self._moments, key=lambda moment: moment.at)

    def _said(self, event: Event) -> tuple[str, Weight] | None:
        if event.kind == RecordedDecision.KIND:
            decided = RecordedDecision.of(event)
            self._decided[decided.key] = decided.text
            return decided.text, WEIGHTS.get(decided.decision, "note")
        if event.kind == RecordedAction.KIND:
            acted = RecordedAction.of(event)
            if self._decided.get(acted.key) != acted.decision:  # the guard acts without a decision beside it
                return acted.decision, "warn"
            return None if acted.result.startswith(QUIET_RESULTS) else (acted.result, "note")
        if event.kind == "attempt.start" and event.data.get("reason") in self._decided.values():
            return _attempt_start({**event.data, "reason": ""}), "note"  # the reason was just told
        return said_of(event)


def _repeats(moment: Moment, last: Moment) -> bool:
    return moment.kind == last.kind and (moment.kind == "checkpoint.saved" or moment.text == last.text)


def said_of(event: Event) -> tuple[str, Weight] | None:
    """The words for one event, and how much it matters; None for one that only programs care about."""
    if event.kind not in WORDS:
        return None
    words, weight = WORDS[event.kind]
    text = words(event.data)
    if not text:
        return None
    if event.kind in (Exit.KIND, Exit.OF_AN_ATTEMPT):
        return text, "done" if Exit.of(event).code == 0 else "bad"
    return text, "warn" if event.kind == "control.done" and "refused" in text else weight


Data = Mapping[str, Any]


def _run_start(data: Data) -> str:
    command = shlex.join(masked_command([*map(str, data.get("command", ()))]))
    resumed = f", resumed from {data['resumed_from']}" if data.get("resumed_from") else ""
    return f"started: {command}{resumed}"


def _attempt_start(data: Data) -> str:
    reason = f": {data['reason']}" if data.get("reason") else ""
    return f"attempt {data.get('attempt', '?')} began{reason}"


def _exit(data: Data) -> str:
    end = Exit.of(Event(Exit.KIND, 0.0, data))
    who = f"attempt {data['attempt']}" if "attempt" in data else "the script"
    if end.signal is not None:
        return f"{who} was ended by {signal_name(end.signal)}"
    return f"{who} finished" if end.code == 0 else f"{who} ended with exit code {end.code}"


def _saved(data: Data) -> str:
    return f"checkpoint {data.get('number', '?')} saved, of step {data.get('step', '?')}"


def _rescue(data: Data) -> str:
    wanted = f": {data['wanted']}" if data.get("wanted") else ""
    return f"step {data.get('step', '?')} ran out of memory{wanted}"


def _foreseen(data: Data) -> str:
    return f"a batch of {data.get('rows', '?')} rows would not fit in memory"


def _pieces(data: Data) -> str:
    k = MicroBatches.of(Event(MicroBatches.KIND, 0.0, data)).k
    return f"batches go on in {k} pieces, with the same effective batch" if k > 1 else ""


def _left(data: Data) -> str:
    stopped, remaining = (", ".join(map(str, data.get(name, ()))) for name in ("stopped", "remaining"))
    told = [f"left running by the script, and stopped: {stopped}"] if stopped else []
    return "; ".join([*told, *([f"left behind, since it does not end: {remaining}"] if remaining else [])])


def _watcher_lost(data: Data) -> str:
    failed = str(data.get("reason") or "").strip().rpartition("\n")[2]
    how = f"failed, which is a bug of its own ({failed})" if failed else "was killed"
    return f"Holdfast's watcher {how}; the relay watched on."


def _control(data: Data) -> str:
    """A pause that came to pass has an event of its own."""
    if data.get("do") in ("pause", "resume") and "refused" not in str(data.get("result")):
        return ""
    return f"{data.get('do', '?')} was asked for: {data.get('result', '?')}"


def _disk(data: Data) -> str:
    return f"the disk of {data.get('mountpoint', '?')} is full"


WORDS: dict[str, tuple[Callable[[Data], str], Weight]] = {
    "run.start": (_run_start, "note"),
    "attempt.start": (_attempt_start, "warn"),
    Exit.KIND: (_exit, "bad"),
    Exit.OF_AN_ATTEMPT: (_exit, "bad"),
    "script.gone": (lambda data: "the script is gone, and nobody saw how it ended", "bad"),
    "script.unkillable": (
        lambda data: f"process {data.get('pid', '?')} waits for a device and cannot be ended; left behind", "bad",
    ),
    "train.begun": (lambda data: "training began", "note"),
    "checkpoint.saved": (_saved, "note"),
    "checkpoint.restored": (lambda data: f"went on from the checkpoint of step {data.get('step', '?')}", "done"),
    "rescue.caught": (_rescue, "warn"),
    "rescue.foreseen": (_foreseen, "warn"),
    MicroBatches.KIND: (_pieces, "done"),
    "rescue.disclosed": (lambda data: f"not the same as in one piece: {data.get('text', '')}", "note"),
    WentOn.KIND: (lambda data: WentOn.of(Event(WentOn.KIND, 0.0, data)).text, "done"),
    RecordedStacks.KIND: (lambda data: f"stacks taken {stacks_said(data)}", "warn"),
    "hang.over": (lambda data: f"it moves again, after {data.get('stood_s', 0):.0f} s", "done"),
    "control.done": (_control, "note"),
    "job.paused": (lambda data: "paused", "note"),
    "job.resumed": (lambda data: "it goes on after a pause", "note"),
    "run.suspended": (lambda data: "suspended from the terminal", "note"),
    "run.resumed": (lambda data: "resumed from the terminal", "note"),
    "key.interrupt": (lambda data: "Ctrl-C was pressed", "note"),
    "watcher.lost": (_watcher_lost, "warn"),
    "relay.lost": (lambda data: f"Holdfast's relay was killed; the output went on into {data.get('output', '?')}", "warn"),
    "guard.lost": (lambda data: "Holdfast's memory guard was killed; the watcher goes on", "warn"),
    "signal.received": (lambda data: f"{signal_name(int(data.get('signal', 0)))} arrived", "note"),
    "output.lost": (lambda data: f"{data.get('stream', '?')} could not be written: {data.get('reason', '?')}", "warn"),
    "processes.left": (_left, "note"),
    "journal.gap": (
        lambda data: f"{data.get('records', '?')} records could not be written: {data.get('reason', '?')}", "warn",
    ),
    "kernel.line": (lambda data: f"kernel: {data.get('text', '')}", "warn"),
    "gpu.lost": (lambda data: f"GPU {data.get('index', '?')} does not respond any more", "bad"),
    "gpu.xid": (lambda data: f"GPU {data.get('index', '?')} reported Xid {data.get('xid', '?')}", "bad"),
    "disk.full": (_disk, "bad"),
    "inside.absent": (lambda data: str(data.get("reason", "")), "warn"),
    "probe.missing": (lambda data: str(data.get("reason", "")) if data.get("tell") else "", "note"),
}  # fmt: skip
NOTED_BY_WHY = (
    "watcher.lost", "relay.lost", "signal.received", "output.lost", "processes.left", "journal.gap",
)  # fmt: skip


def notes(events: Iterable[Event]) -> Iterator[tuple[float, str]]:
    """What `why` tells beside its verdict: what Holdfast did, and what befell it."""
    for event in events:
        if event.kind == RecordedAction.KIND:
            acted = RecordedAction.of(event)
            if not acted.is_about_us:
                yield event.at, acted.decision
        elif event.kind in NOTED_BY_WHY and (said := said_of(event)):
            yield event.at, said[0]
