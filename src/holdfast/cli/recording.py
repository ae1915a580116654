"""Reads a recorded run as a window, and asks the machine where the record has no end."""

from __future__ import annotations

import gc
import heapq
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from holdfast import detectors, diagnosis
from holdfast.cli.errors import UserError
from holdfast.cli.fleet_recording import Together, together
from holdfast.cli.replay import ATTEMPTS_TOLD, LOOKS, PATIENCE_S, Attempt, Replay, turns
from holdfast.detectors.runner import DetectorRunner
from holdfast.diagnosis.ruled_out import ruled_out
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.journal import Journal, NewerJournal
from holdfast.probes import Missing, Scope
from holdfast.probes.machine import boot_id
from holdfast.probes.vmstat import Vmstat
from holdfast.recorded_events import Exit, RecordedDecision
from holdfast.vocabulary import DecisionKind, Diagnosis, Event, Sample, Window

READ = detectors.READ_WHILE_RUNNING | detectors.READ_AT_THE_END | diagnosis.READS | ruled_out.reads
UNDIAGNOSED = "Holdfast cannot say: its own diagnosis failed, as is told below."


@dataclass(frozen=True, slots=True)
class Recording:
    run: Path
    window: Window
    diagnosis: Diagnosis
    damage: list[str]


def read_run(run: Path, *, of_the_job: bool = False) -> Recording:
    """A day of a hundred signals takes 1.5 s. No cycles are made meanwhile: looking for them took a sixth of the time.

    `of_the_job`: where the run is one rank of several, all of them are read, and the run of the one that explains it is given.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return _read(run, of_the_job)
    finally:
        if collects:
            gc.enable()


def _read(asked: Path, of_the_job: bool) -> Recording:
    try:
        job = together(asked) if of_the_job else None
        run = job.run if job is not None else asked
        journal = Journal(run / "journal")
        events = journal.events() if job is None else job.own(journal.events())
        today = _aftermath(events) if not any(event.kind == Exit.KIND for event in events) else []
        replay = _replayed(journal, events, today, job)
        output = journal.output()
    except NewerJournal as error:
        raise UserError(str(error)) from None
    runner = DetectorRunner(detectors.FOR_DIAGNOSIS, slow_s=PATIENCE_S, hung_s=0.0)
    verdicts = [_diagnosed(attempt, runner) for attempt in replay.attempts[-ATTEMPTS_TOLD:]]
    off = [*replay.switched_off(time.time()), *runner.switched_off(time.time())]
    told = [*events, *(one for one in today if isinstance(one, Event)), *off]
    window = Window(told, _joined(replay.attempts), output)
    return Recording(run, window, over_attempts(verdicts, len(replay.attempts) - 1), list(journal.damage))


def _replayed(
    journal: Journal, events: Sequence[Event], today: Sequence[Sample | Event], job: Together | None
) -> Replay:
    """Each attempt as if it had been the only one. `today`: what the machine says of it now. `job`: that it is a rank of."""
    pause_s = (events[-1].at - events[0].at) / LOOKS if events else 0.0
    replay = Replay(READ, restarts_in(events), lambda since, until: journal.output(since=since, until=until), pause_s)
    samples = journal.samples(READ)
    if job is not None:
        samples = heapq.merge(samples, *job.samples(), key=attrgetter("at"))
    for at, readings in turns(samples, events):
        replay.turn(at, readings)
    if today:
        replay.turn(today[-1].at, today)
    replay.end_attempt(float("inf"))
    replay.close()
    return replay


def _joined(attempts: Sequence[Attempt]) -> dict[str, list[Sample]]:
    names = {name for attempt in attempts for name in attempt.window.names()}
    return {name: [sample for attempt in attempts for sample in attempt.window.series(name)] for name in names}


def _diagnosed(attempt: Attempt, runner: DetectorRunner) -> Diagnosis:
    """A bug in the diagnosis is named as a bug of Holdfast's, never as a broken record."""
    findings = runner.find(attempt.window)
    end = attempt.window.event(Exit.KIND)
    outcome = "unknown" if end is None else "completed" if Exit.of(end).code == 0 else "failed"
    otherwise = Diagnosis(outcome, None, summary=UNDIAGNOSED)
    judged = partial(diagnose, findings=findings, while_running=attempt.told)
    return runner.alone("diagnosis", judged, attempt.window, otherwise)


def restarts_in(events: Iterable[Event]) -> list[float]:
    """When another attempt was decided on and came to pass, or was stopped while it was waited for."""
    moments: list[float] = []
    decided: float | None = None
    for event in events:
        if event.kind == RecordedDecision.KIND:
            decided = event.at if RecordedDecision.of(event).decision == DecisionKind.RESTART else decided
        elif event.kind == "attempt.start":
            moments.append(event.at if decided is None else decided)
            decided = None
        elif (
            event.kind in ("run.start", Exit.KIND)
            and decided is not None
            and (event.data.get("script_pid") or event.data.get("waiting"))
        ):
            moments.append(decided)  # the watcher was killed as it started one, or a signal came first
            decided = None
    return moments


def _aftermath(events: Sequence[Event]) -> list[Sample | Event]:
    """For a record without an end: whether its processes still run, and the kill counters now."""
    starts = [event for event in events if event.kind in ("run.start", "attempt.start")]
    now = time.time()
    data: dict[str, object] = {"boot_id": boot_id(Path("/")), "hostname": os.uname().nodename}
    data["last_at"] = events[-1].at if events else None
    machine = next((event for event in events if event.kind == "machine"), None)
    same_boot = machine is not None and machine.data.get("boot_id") == data["boot_id"]
    if starts and same_boot:
        data["script_alive"] = is_alive(starts[-1].data.get("script_pid"), starts[-1].data.get("script_started"))
        data["watcher_alive"] = any(
            is_alive(start.data.get("watched_by"), start.data.get("watcher_started")) for start in starts
        )
    counters = _counters_now(now) if data.get("script_alive") is False else []
    return [*counters, Event("aftermath", now, data)]


def _counters_now(now: float) -> list[Sample]:
    try:
        readings = Vmstat(Scope(os.getpid(), os.getpid(), ())).read(now)
    except Missing:
        return []
    return [reading for reading in readings if isinstance(reading, Sample)]


def any_alive(starts: Iterable[Event]) -> bool:
    """Whether a script or a watcher that these events name still runs."""
    return any(
        is_alive(start.data.get("script_pid"), start.data.get("script_started"))
        or is_alive(start.data.get("watched_by"), start.data.get("watcher_started"))
        for start in starts
    )


def is_alive(pid: object, started: object) -> bool:
    """Whether that very process, and not a later one with its number, still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and float(fields[19]) == started
