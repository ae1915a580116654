"""A recorded run as a window, with what can still be learned of it now."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.detectors import find_endings
from holdfast.diagnosis.survived import earlier_attempts
from holdfast.diagnosis.verdict import diagnose
from holdfast.journal import Journal, NewerJournal
from holdfast.probes import Missing, Scope
from holdfast.probes.heartbeat import boot_id
from holdfast.probes.vmstat import Vmstat
from holdfast.vocabulary import Diagnosis, Event, Sample, Window

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
    if not any(event.kind == "script.exit" for event in events):
        events.append(_aftermath(events, series))
    try:
        return _explained(run, Window(events, series, output), list(journal.damage))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the record of {run.name} cannot be understood ({error!r})") from None


def _explained(run: Path, window: Window, damage: list[str]) -> Recording:
    survived = [diagnose(earlier, find_endings(earlier)) for earlier in earlier_attempts(window)]
    return Recording(run, window, diagnose(window, find_endings(window), survived), damage)


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
    """The record has no ending: what does the machine say now?"""
    start = next((event for event in events if event.kind == "run.start"), None)
    now = time.time()
    data: dict[str, object] = {"boot_id": boot_id(Path("/")), "last_at": events[-1].at if events else None}
    machine = next((event for event in events if event.kind == "machine"), None)
    same_boot = machine is not None and machine.data.get("boot_id") == data["boot_id"]
    if start is not None and same_boot:
        data["script_alive"] = _alive(start.data.get("script_pid"), start.data.get("script_started"))
        data["watcher_alive"] = _alive(start.data.get("watched_by"), start.data.get("watcher_started"))
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


def _alive(pid: object, started: object) -> bool:
    """Whether that very process, and not a later one with its number, still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and float(fields[19]) == started
