"""The report of a run that failed, made by a process of its own once the script has ended. It changes no exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.actions import tell_engine
from holdfast.supervisor.hardening import restore_oom_score
from holdfast.vocabulary import Diagnosis, Event, Policy

NAME = "report.html"
SWITCH = "HOLDFAST_REPORT"  # `off`: none is made
STOPPED = 4  # the exit code of a report that was not called for
BASE_S, PER_MIB_S = 0.7, 0.25  # what one takes: measured for a short run, and for a day of a hundred signals
# How long the prompt may be waited for: at least so long, the hundredth part of what the run took, at most so long.
LEAST_S, SHARE, MOST_S = 2.5, 0.01, 10.0


class FailureReportVerb:
    """Writes the report of a run that failed into its directory; `holdfast run` starts it. Not for the command line."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("--tell-engine", action="store_true")
        parser.add_argument("--no-page", action="store_true")

    def run(self, options: argparse.Namespace) -> int:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the relay takes its signals in a thread; Ctrl-C ends us
        restore_oom_score("0")
        from holdfast.cli.recording import read_run  # noqa: PLC0415 - not for the relay, which reads this file too
        from holdfast.cli.why import report_of, write_page  # noqa: PLC0415

        recording = read_run(Path(options.run))
        if options.tell_engine:
            _tell_engine(Path(options.run), recording.diagnosis)
        if options.no_page or recording.diagnosis.outcome in ("completed", "recovered", "stopped", "running"):
            return STOPPED
        write_page(str(Path(options.run) / NAME), report_of(recording))
        return 0


def after_run(directory: Path | None, policy: Policy, code: int, say: Callable[[str], bool]) -> None:
    if code == 0 or directory is None or not (directory / "journal").is_dir():
        return
    page, engine = os.environ.get(SWITCH) != "off", policy != Policy.OBSERVE and tell_engine.wanted(os.environ)
    if not page and not engine:
        return
    options = [*(["--tell-engine"] if engine else ()), *([] if page else ["--no-page"])]
    size, took_s = _size_and_age(directory / "journal")
    patience_s = min(MOST_S, max(LEAST_S, SHARE * took_s))
    if engine:
        patience_s = MOST_S  # nobody sits before a rank, and the engine takes what it is told before it ends
    if BASE_S + PER_MIB_S * size / (1 << 20) > patience_s:
        said = f"a report of this run, which is long: holdfast why {directory.name} --html report.html"
    else:
        failed = _made(directory, patience_s, options)
        if failed:
            _note(directory, "report.failed", failed)
        made = directory / NAME
        said = f"a report of how it ended: {_short(made)}" if made.exists() else ""
    if said and policy != Policy.OBSERVE:
        say(f"holdfast: {said}")


def _tell_engine(directory: Path, diagnosis: Diagnosis) -> None:
    cause = diagnosis.cause
    evidence = [item.text for item in cause.evidence] if cause is not None else []
    moments = [item.at for item in cause.evidence if item.at is not None] if cause is not None else []
    title = f"{cause.title} ({cause.id})" if cause is not None else diagnosis.summary
    for became in tell_engine.carry_out(title, evidence, min(moments, default=time.time()), os.environ):
        _note(directory, "engine.told", became)


def _made(directory: Path, patience_s: float, options: Sequence[str]) -> str:
    """Why it could not be made; empty where it was, or was not called for."""
    import subprocess  # noqa: PLC0415 - only a run that failed needs it

    command = [sys.executable, "-P", "-m", "holdfast", "failure-report", *options, str(directory)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False)
    except subprocess.TimeoutExpired:
        return f"it took longer than {patience_s:.1f} s"
    except OSError as error:
        return str(error)
    if done.returncode in (0, STOPPED, 130, -signal.SIGINT):
        return ""
    return done.stderr.decode("utf-8", "replace").strip()[-2000:] or f"exit code {done.returncode}"


def _size_and_age(journal: Path) -> tuple[int, float]:
    """Of the record: its bytes, and how long ago its first segment was begun."""
    size, began = 0, time.time()
    with contextlib.suppress(OSError), os.scandir(journal) as entries:
        for entry in entries:
            status = entry.stat()
            size, began = size + status.st_size, min(began, status.st_mtime)
    with contextlib.suppress(ValueError):
        began = min(began, time.mktime(time.strptime(journal.parent.name[:15], "%Y%m%d-%H%M%S")))
    return size, max(0.0, time.time() - began)


def _note(directory: Path, kind: str, reason: str) -> None:
    from holdfast.journal import JournalWriter  # noqa: PLC0415

    writer = JournalWriter(directory / "journal", "report")
    writer.event(Event(kind, time.time(), {"reason": reason}))
    writer.close()


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
