from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.cli.errors import UserError
from holdfast.cli.recording import any_alive, is_alive
from holdfast.cli.run_store import all_runs, find_run, search_directories
from holdfast.control_socket import NoControl, Refused, ask
from holdfast.journal import Journal, NewerJournal
from holdfast.stack_snapshots import ProcessSnapshot, TreeSnapshot, of_data
from holdfast.supervisor import tree_stacks
from holdfast.supervisor.native_stacks import NoNativeFrames, find_py_spy, native_frames
from holdfast.views.stacks_text import as_text
from holdfast.vocabulary import Event

STARTS = ("run.start", "attempt.start")
SOURCE_PATIENCE_S = 2.0  # for the lines of code: the script's own file may lie on the file system that hangs


class StacksVerb:
    """Shows where every thread of a running job stands. It goes on as before; no rights are needed.

    holdfast stacks               the latest run that is going on
    holdfast stacks baseline      one by its name or id
    holdfast stacks --json        for programs
    holdfast stacks --native      with the frames of native code, by py-spy

    Equal stacks are shown once, the odd one first; frames marked > are the script's own. Exits 0, or 2 on misuse and where
    nothing runs.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "run", nargs="?", metavar="RUN", help="a run's id or name (default: the latest that is going on)"
        )
        parser.add_argument("--json", action="store_true", help="the stacks as JSON")
        parser.add_argument(
            "--native", action="store_true", help="also native frames; stops each process for a moment (needs py-spy)"
        )
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        run, starts = _running(options.run, options.dir)
        snapshot, notes = _taken(run, starts)
        if options.native:
            snapshot, note = _with_native_frames(snapshot)
            notes += [note] if note else []
        snapshot = _with_code(snapshot)
        if options.json:
            print(json.dumps({"run": run.name, "notes": notes, **snapshot.as_data()}, indent=2))
        else:
            print(as_text(run.name, snapshot, notes, sys.stdout.isatty(), fold=not options.native))
        return 0


def stacks_now(run: Path) -> str:
    """As text, of a run that goes on."""
    snapshot, notes = _taken(run, starts_of(run))
    return as_text(run.name, _with_code(snapshot), notes, colour=False)


def _running(wanted: str | None, directory: str | None) -> tuple[Path, list[Event]]:
    if wanted is not None:
        try:
            run = find_run(wanted, directory)
        except PermissionError:
            raise UserError(f"{wanted} belongs to another user: only that user may look into it") from None
        starts = starts_of(run)
        if not any_alive(starts):
            raise UserError(f"{run.name} does not run any more; `holdfast why {run.name}` says how it ended")
        return run, starts
    for run in reversed(all_runs(directory)):
        starts = starts_of(run)
        if any_alive(starts):
            return run, starts
    where = search_directories(directory)[0]
    raise UserError(f"no run of {where} is going on; start one with: holdfast run COMMAND")


def starts_of(run: Path) -> list[Event]:
    try:
        return [event for event in Journal(run / "journal").events() if event.kind in STARTS]
    except NewerJournal as error:
        raise UserError(str(error)) from None
    except PermissionError:
        raise UserError(f"{run} belongs to another user: only that user may look into it") from None


def _taken(run: Path, starts: Sequence[Event]) -> tuple[TreeSnapshot, list[str]]:
    """By the run's watcher or, where that is gone, by ourselves."""
    try:
        return of_data(ask(run, "stacks")["snapshot"]), []
    except Refused as error:
        raise UserError(f"{run.name}: {error}") from None
    except NoControl as error:
        script = _script(starts)
        if script is None:
            raise UserError(f"{run.name}: {error}, and no script runs") from None
        snapshot = tree_stacks.take([script, *tree_stacks.below(script)])
        return snapshot, [f"{error}, so the processes were asked directly"]


def _script(starts: Sequence[Event]) -> int | None:
    alive = [
        int(start.data["script_pid"])
        for start in starts
        if is_alive(start.data.get("script_pid"), start.data.get("script_started"))
    ]
    return alive[-1] if alive else None


def _with_native_frames(snapshot: TreeSnapshot) -> tuple[TreeSnapshot, str]:
    """Whatever could be had, and why not all."""
    note, processes = "", []
    for process in snapshot.processes:
        found = process
        if any(thread.frames for thread in process.threads):
            try:
                found = _with_frames(process, native_frames(process.pid, find_py_spy()))
            except NoNativeFrames as error:
                note = str(error)
        processes.append(found)
    return replace(snapshot, processes=tuple(processes)), note


def _with_frames(process: ProcessSnapshot, frames: dict[int, Any]) -> ProcessSnapshot:
    threads = tuple(replace(thread, frames=frames.get(thread.tid, thread.frames)) for thread in process.threads)
    return replace(process, threads=threads)


def _with_code(snapshot: TreeSnapshot) -> TreeSnapshot:
    found: list[TreeSnapshot] = []
    reading = threading.Thread(target=lambda: found.append(tree_stacks.with_code(snapshot)), daemon=True)
    reading.start()
    reading.join(SOURCE_PATIENCE_S)
    return found[0] if found else snapshot
