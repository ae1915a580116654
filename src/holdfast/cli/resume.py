"""Which run `--resume` means, whether it can be continued, and its checkpoints in the new run's directory."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.cli.errors import UserError
from holdfast.cli.recording import Recording, read_run
from holdfast.cli.run_store import all_runs, find_run
from holdfast.inside.script_state.rank_checkpoints import newest_of_any
from holdfast.journal import Journal, NewerJournal
from holdfast.masking import masked_command
from holdfast.supervisor.known_micro_batches import newest
from holdfast.supervisor.run_start import exact_command, recorded_command
from holdfast.vocabulary import Event


@dataclass(frozen=True, slots=True)
class Resumed:
    run: Path
    command: tuple[str, ...]
    began: float
    micro_batches: int | None
    step: int | None


def resumable(wanted: str, command: list[str], cwd: Path, directory: str | None, resume_args: str) -> Resumed:
    """`wanted` names a run, or is empty: then the latest of this command here, or the latest at all without a command."""
    run = find_run(wanted, directory) if wanted else _latest_of(command, cwd, directory)
    recording = read_run(run)
    start = _start(run)
    outcome = recording.diagnosis.outcome
    if outcome in ("running", "stalled"):
        raise UserError(f"--resume: {run.name} is still going; stop it first")
    if outcome in ("completed", "recovered"):
        raise UserError(f"--resume: {run.name} has finished; start without --resume to train anew")
    manifest = newest_of_any(str(run / "checkpoints"))
    if manifest is None and not resume_args:
        raise UserError(f"--resume: {run.name} left no checkpoint{_hint(run, command, cwd, directory)}")
    step = manifest.get("step") if manifest else None
    began = float(start.get("began") or recording.window.events("run.start")[0].at)
    return Resumed(run, tuple(command or _recorded(run, start, cwd)), began, _micro_batches(recording), step)


def take_over(resumed: Resumed, directory: Path) -> None:
    """Hard links where the file system has them: the old run keeps its own, and no space is used."""
    source = resumed.run / "checkpoints"
    if not source.is_dir():
        return
    try:
        torn = shutil.ignore_patterns(".*")  # being saved or removed when it ended
        shutil.copytree(source, directory / "checkpoints", copy_function=_link_or_copy, ignore=torn)
    except (OSError, shutil.Error) as error:
        raise UserError(f"--resume: the checkpoints of {resumed.run.name} cannot be copied: {error}") from None


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _latest_of(command: list[str], cwd: Path, directory: str | None) -> Path:
    if not command:
        return find_run(None, directory)
    run = next((run for run in reversed(all_runs(directory)) if _is_of(run, command, cwd)), None)
    if run is None:
        raise UserError(f"--resume: no run of {shlex.join(command)[:200]} here; name one with --resume=RUN")
    return run


def _is_of(run: Path, command: list[str], cwd: Path) -> bool:
    start = _start(run)
    recorded = masked_command(
        [str(word) for word in start.get("command", ())]
    )  # an older record has it as it was typed
    return recorded == recorded_command(command) and start.get("cwd") == str(cwd)


def _start(run: Path) -> dict[str, Any]:
    try:
        events: list[Event] = Journal(run / "journal").events("run.start")
    except NewerJournal:
        return {}
    return dict(events[0].data) if events else {}


def _recorded(run: Path, start: dict[str, Any], cwd: Path) -> list[str]:
    words = exact_command(run, [str(word) for word in start.get("command", ())])
    if words is None:
        raise UserError(f"--resume: the command of {run.name} is not recorded whole; give it after the options")
    if start.get("cwd") != str(cwd):
        raise UserError(f"--resume: {run.name} ran in {start.get('cwd')}; go there first")
    return words


def _hint(run: Path, command: list[str], cwd: Path, directory: str | None) -> str:
    for other in reversed(all_runs(directory)):
        if other != run and _is_of(other, command, cwd) and newest_of_any(str(other / "checkpoints")):
            return f"; an earlier run has one: --resume={other.name}"
    return " to resume from; start without --resume"


def _micro_batches(recording: Recording) -> int | None:
    """The k to resume with: doubled where the run was killed for memory."""
    k = newest(recording.window.events()) or 1
    cause = recording.diagnosis.cause
    killed = cause is not None and cause.id in ("container-memory-limit", "host-memory-exhausted")
    return k * 2 if killed else k if k > 1 else None
