"""Reads a recorded run as a window, and asks the machine where the record has no end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from holdfast import detectors
from holdfast.cli.errors import UserError
from holdfast.detectors.runner import DetectorRunner
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.journal import Journal, NewerJournal
from holdfast.probes import Missing, Scope
from holdfast.probes.machine import boot_id
from holdfast.probes.vmstat import Vmstat
from holdfast.recorded_events import Exit, RecordedDecision
from holdfast.vocabulary import DecisionKind, Diagnosis, Event, Sample, Window

ATTEMPTS_TOLD = 8  # the last ones of a run that was started again very often
LASTING = (
    "run.start",
    "machine",
    "cgroup.found",
    "probe.missing",
    "aftermath",
)  # recorded once, valid for every attempt
PATIENCE_S = 30.0  # with one detector; a record of hours takes each some milliseconds
UNDIAGNOSED = "Holdfast cannot say: its own diagnosis failed, as is told below."
SAMPLES_KEPT_S = 1800.0  # of the end; counters also need their beginning


@dataclass(frozen=True, slots=True)
class Recording:
    run: Path
    window: Window
    diagnosis: Diagnosis
    damage: list[str]


def read_run(run: Path) -> Recording:
    try:
        journal = Journal(run / "journal")
        events = journal.events()
        series = _series(journal, events)
        output = journal.output()
    except NewerJournal as error:
        raise UserError(str(error)) from None
    if not any(event.kind == Exit.KIND for event in events):
        events.append(_aftermath(events, series))
    window = Window(events, series, output)
    began_again = _restarts(window)
    parts = [window] if not began_again else _attempts(journal, window, began_again)
    runner = DetectorRunner(detectors.FOR_DIAGNOSIS, slow_s=PATIENCE_S, hung_s=0.0)
    diagnosis = over_attempts([_diagnosed(part, runner) for part in parts], len(began_again))
    if failed := runner.switched_off(time.time()):
        window = Window([*events, *failed], series, output)
    return Recording(run, window, diagnosis, list(journal.damage))


def _diagnosed(attempt: Window, runner: DetectorRunner) -> Diagnosis:
    """A bug in the diagnosis is named as a bug of Holdfast's, never as a broken record."""
    findings = runner.find(attempt)
    end = attempt.event(Exit.KIND)
    outcome = "unknown" if end is None else "completed" if Exit.of(end).code == 0 else "failed"
    otherwise = Diagnosis(outcome, None, summary=UNDIAGNOSED)
    return runner.alone("diagnosis", partial(diagnose, findings=findings), attempt, otherwise)


def _restarts(window: Window) -> list[float]:
    """When another attempt was decided on and came to pass, or was stopped while it was waited for."""
    moments: list[float] = []
    decided: float | None = None
    for event in window.events(RecordedDecision.KIND, "run.start", "attempt.start", Exit.KIND):
        if event.kind == RecordedDecision.KIND:
            decided = event.at if RecordedDecision.of(event).decision == DecisionKind.RESTART else decided
        elif event.kind == "attempt.start":
            moments.append(event.at if decided is None else decided)
            decided = None
        elif decided is not None and (event.data.get("script_pid") or event.data.get("waiting")):
            moments.append(decided)  # the watcher was killed as it started one, or a signal came first
            decided = None
    return moments


def _attempts(journal: Journal, window: Window, began_again: list[float]) -> list[Window]:
    """Each attempt as if it had been the only one, the latest last. Of very many the last few."""
    parts = []
    for since, until in list(pairwise([float("-inf"), *began_again, float("inf")]))[-ATTEMPTS_TOLD:]:
        events = [
            Exit.of(event).event(event.at) if event.kind == Exit.OF_AN_ATTEMPT else event
            for event in window.events()
            if since <= event.at < until or event.kind in LASTING
        ]
        series = {
            name: [sample for sample in window.series(name) if since <= sample.at < until] for name in window.names()
        }
        parts.append(Window(events, series, journal.output(since=since, until=until)))
    return parts


def _series(journal: Journal, events: list[Event]) -> dict[str, list[Sample]]:
    """First sample of every signal, and the last half hour."""
    since = (events[-1].at if events else time.time()) - SAMPLES_KEPT_S
    series: dict[str, list[Sample]] = {}
    for sample in journal.samples():
        kept = series.setdefault(sample.name, [])
        if not kept or sample.at >= since:
            kept.append(sample)
    return series


def _aftermath(events: list[Event], series: dict[str, list[Sample]]) -> Event:
    """For a record without an end: whether its processes still run, and the kill counters now."""
    starts = [event for event in events if event.kind in ("run.start", "attempt.start")]
    now = time.time()
    data: dict[str, object] = {"boot_id": boot_id(Path("/")), "last_at": events[-1].at if events else None}
    machine = next((event for event in events if event.kind == "machine"), None)
    same_boot = machine is not None and machine.data.get("boot_id") == data["boot_id"]
    if starts and same_boot:
        data["script_alive"] = _alive(starts[-1].data.get("script_pid"), starts[-1].data.get("script_started"))
        data["watcher_alive"] = any(
            _alive(start.data.get("watched_by"), start.data.get("watcher_started")) for start in starts
        )
        if not data["script_alive"]:
            for reading in _counters_now(now):
                series.setdefault(reading.name, []).append(reading)
    return Event("aftermath", now, data)


def _counters_now(now: float) -> list[Sample]:
    try:
        readings = Vmstat(Scope(os.getpid(), os.getpid(), ())).read(now)
    except Missing:
        return []
    return [reading for reading in readings if isinstance(reading, Sample)]


def any_alive(starts: Iterable[Event]) -> bool:
    """Whether a script or a watcher that these events name still runs."""
    return any(
        _alive(start.data.get("script_pid"), start.data.get("script_started"))
        or _alive(start.data.get("watched_by"), start.data.get("watcher_started"))
        for start in starts
    )


def _alive(pid: object, started: object) -> bool:
    """Whether that very process, and not a later one with its number, still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and float(fields[19]) == started
