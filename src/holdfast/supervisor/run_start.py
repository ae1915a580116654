"""How a run's record begins: what was started, by whom, and what would resume it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from holdfast import __version__
from holdfast.masking import MASK, masked_command
from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Event

COMMAND_WORDS, COMMAND_CHARACTERS = 200, 1000  # of a command line that may be megabytes long

EXACT_COMMAND = "command.json"


def opening_events(spec: RunSpec, script_pid: int, now: float) -> list[Event]:
    about = {
        "command": recorded_command(spec.command),
        "cwd": str(spec.cwd),
        "name": spec.name,
        "policy": spec.policy,
        "memory_bytes": spec.memory_bytes,
        "script_pid": script_pid,
        "script_started": started_at(script_pid),
        "watched_by": os.getpid(),
        "watcher_started": started_at(os.getpid()),
        "holdfast": __version__,
        "options": recorded_options(spec.options),
        "resumed_from": spec.resumed_from,
        "began": spec.began,
    }
    if spec.attached:
        about |= {"attached": True, "notebook": spec.notebook}
    events = [Event("run.start", now, about)]
    if spec.resumed_from:
        events.append(Event("checkpoint.inherited", now, {"run": spec.resumed_from, "step": spec.resumed_step}))
    return events


def recorded_options(options: Sequence[str]) -> list[str]:
    """The address of --notify may be a secret as a whole."""
    shown = masked_command(options)
    for number, option in enumerate(options):
        if option == "--notify" and number + 1 < len(options):
            shown[number + 1] = _shown_address(options[number + 1])
        elif option.startswith("--notify="):
            shown[number] = f"--notify={_shown_address(option.partition('=')[2])}"
    return shown


def _shown_address(url: str) -> str:
    from holdfast.actions.post_verdict import shown_address  # noqa: PLC0415 - HTTP weighs some MiB, and few need it

    return shown_address(url)


def recorded_command(command: Sequence[str]) -> list[str]:
    """As it stands in records and on pages: tokens and passwords are masked, and it is not too long."""
    return [word[:COMMAND_CHARACTERS] for word in masked_command(command[:COMMAND_WORDS])]


def keep_exact_command(directory: Path, command: Sequence[str]) -> None:
    """For a later resume, where the recorded one is not the whole of it. Readable by its owner alone."""
    if recorded_command(command) == list(command) and MASK not in " ".join(command):
        return
    with contextlib.suppress(OSError), open(directory / EXACT_COMMAND, "x", opener=_private) as file:
        json.dump(list(command), file)


def exact_command(directory: Path, recorded: Sequence[str]) -> list[str] | None:
    """None where it is not known: an older record of one that was cut."""
    try:
        found = json.loads((directory / EXACT_COMMAND).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        cut = len(recorded) >= COMMAND_WORDS or any(len(word) >= COMMAND_CHARACTERS for word in recorded)
        return None if cut or not recorded or MASK in " ".join(recorded) else list(recorded)
    return [str(word) for word in found]


def forget_exact_command(directory: Path) -> None:
    """A run that has finished is never resumed: nothing secret is left behind."""
    with contextlib.suppress(OSError):
        (directory / EXACT_COMMAND).unlink()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def started_at(pid: int) -> float | None:
    """The process's start in clock ticks since boot: tells it from a later one with the same pid."""
    try:
        return float(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None
