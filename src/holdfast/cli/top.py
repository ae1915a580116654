from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import control_socket
from holdfast.cli.errors import UserError
from holdfast.cli.recording import any_alive, read_run
from holdfast.cli.run_store import all_runs, find_run
from holdfast.cli.stacks import stacks_now, starts_of
from holdfast.control_socket import Refused
from holdfast.journal import NewerJournal
from holdfast.probes.tree import stat_of
from holdfast.views.overview import RunReader
from holdfast.views.rank_rows import rank_rows
from holdfast.views.safe_text import safe
from holdfast.views.stacks_text import STATES
from holdfast.views.top.panels import ASCII, UNICODE, Canvas, ProcessState, Verdict
from holdfast.views.top.plain import as_text
from holdfast.views.why_text import verdict_line

if TYPE_CHECKING:
    from holdfast.views.top.app import Run

STUCK = {"D": "stuck", "I": "idle"}  # shorter than `stacks` says it


class TopVerb:
    """Shows how a run stands: the verdict, progress, memory against its limits, loss, what happened, processes.

    holdfast top                  the latest run that is going on, or the latest
    holdfast top baseline         one by its name or id, also one that has ended
    holdfast top --once           as plain text, once; so it does where there is no terminal

    Keys: s stacks, c checkpoint now, p pause and resume, x stop (asks first), ? help, q quit. Exits 0, or 2 on misuse.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "run",
            nargs="?",
            metavar="RUN",
            help="a run's id or name (default: the latest that is going on, or the latest)",
        )
        parser.add_argument("--once", action="store_true", help="print it once, as plain text")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        run = _chosen(options.run, options.dir)
        if options.once or not _has_screen():
            print(_once(run))
            return 0
        from holdfast.views.top.app import TopApp  # noqa: PLC0415 - half a second, for the screen alone

        reason = TopApp(run_of(run)).run()
        if reason:
            raise UserError(reason)
        return 0


def _chosen(wanted: str | None, directory: str | None) -> Path:
    latest = find_run(wanted, directory)
    if wanted is not None:
        return latest
    served = (run for run in reversed(all_runs(directory)) if os.path.lexists(run / control_socket.NAME))
    return next((run for run in served if any_alive(starts_of(run))), latest)


def _has_screen() -> bool:
    """Textual reads keys from standard input and draws on standard error."""
    terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return terminal and os.environ.get("TERM", "") not in ("dumb", "unknown", "")


def _once(run: Path) -> str:
    reader = RunReader(run, any_alive)
    try:
        found = reader.read()
    except NewerJournal as error:
        raise UserError(str(error)) from None
    except PermissionError:
        raise UserError(f"{run} belongs to another user: only that user may look into it") from None
    symbols = UNICODE if (sys.stdout.encoding or "").lower().startswith("utf") else ASCII
    canvas = Canvas(max(40, shutil.get_terminal_size((80, 24)).columns), symbols)
    return as_text(found, reader.moments(), judged(run), _look_at, canvas=canvas, now=time.time())


def run_of(run: Path) -> Run:
    """A run as the screen needs it."""
    from holdfast.views.top.app import Run  # noqa: PLC0415

    return Run(
        reader=RunReader(run, any_alive),
        judge=lambda: judged(run),
        ask=lambda do: str(control_socket.ask(run, do).get("result", "done")),
        stacks=lambda: _stacks(run),
        look_at=_look_at,
    )


def judged(run: Path) -> Verdict:
    try:
        recording = read_run(run, of_the_job=True)
    except UserError as error:
        return Verdict("unknown", safe(str(error)))
    except OSError as error:
        return Verdict("unknown", f"the record cannot be read: {error.strerror or error}")
    found = recording.diagnosis
    noticed = tuple(_one_line(cause.title) for cause in found.noticed)
    return Verdict(found.outcome, _one_line(verdict_line(found)), noticed, rank_rows(recording.window))


def _one_line(text: str) -> str:
    return " ".join(safe(text).split())


def _stacks(run: Path) -> str:
    try:
        return stacks_now(run)
    except UserError as error:
        raise Refused(str(error)) from None


def _look_at(pid: int) -> ProcessState | None:
    try:
        seen = stat_of("/proc", pid)
    except OSError:
        return None
    return None if seen is None else ProcessState(STUCK.get(seen.state) or STATES.get(seen.state, "?"), seen.rss_bytes)
