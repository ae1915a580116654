"""How a run's record begins: what was started, by whom, and what would resume it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from holdfast import __version__
from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Event

COMMAND_WORDS, COMMAND_CHARACTERS = 200, 1000  # of a command line that may be megabytes long


def opening_events(spec: RunSpec, script_pid: int, now: float) -> list[Event]:
    about = {
        "command": shortened_command(spec.command),
        "cwd": str(spec.cwd),
        "name": spec.name,
        "policy": spec.policy,
        "memory_bytes": spec.memory_bytes,
        "script_pid": script_pid,
        "script_started": started_at(script_pid),
        "watched_by": os.getpid(),
        "watcher_started": started_at(os.getpid()),
        "holdfast": __version__,
        "options": list(spec.options),
        "resumed_from": spec.resumed_from,
        "began": spec.began,
    }
    events = [Event("run.start", now, about)]
    if spec.resumed_from:
        events.append(Event("checkpoint.inherited", now, {"run": spec.resumed_from, "step": spec.resumed_step}))
    return events


def shortened_command(command: Sequence[str]) -> list[str]:
    return [word[:COMMAND_CHARACTERS] for word in command[:COMMAND_WORDS]]


def started_at(pid: int) -> float | None:
    """The process's start in clock ticks since boot: tells it from a later one with the same pid."""
    try:
        return float(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None
