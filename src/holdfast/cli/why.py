from __future__ import annotations

import argparse
import contextlib
import os
import stat
import sys
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.pasted_log import ReadLog, read_file, read_stdin
from holdfast.cli.recording import Recording, read_run
from holdfast.cli.run_store import all_runs, find_run
from holdfast.diagnosis.ruled_out import ruled_out
from holdfast.views.why_json import as_json, log_as_json
from holdfast.views.why_text import as_text, considered, log_as_text
from holdfast.vocabulary import Diagnosis


class WhyVerb:
    """Says how a run ended: one cause, the evidence, the fix.

    holdfast why                  the latest run
    holdfast why baseline --json  one by its name or id, for programs
    holdfast why --html why.html  a report to send: verdict, charts, output, stacks in one file
    holdfast why train.log        any log, from any machine
    kubectl logs pod | holdfast why -

    Exits 0 when it could answer, 3 when it cannot tell, 2 on misuse.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "run",
            nargs="?",
            metavar="RUN|LOGFILE|-",
            help="a run's id or name (default: the latest), a log, or - for stdin",
        )
        parser.add_argument("--json", action="store_true", help="the answer as JSON")
        parser.add_argument("--html", metavar="FILE", help="also write a report with charts, in one file to send")
        parser.add_argument(
            "--verbose",
            action="store_true",
            help="also say what was ruled out and why, and where a check of Holdfast's failed",
        )
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        log = _log(options.run, options.dir)
        if log is not None:
            self._tell_log(log, options)
            return _code(log.diagnosis)
        recording = read_run(find_run(options.run, options.dir), of_the_job=True)
        self._tell_run(recording, options)
        return _code(recording.diagnosis)

    def _tell_log(self, log: ReadLog, options: argparse.Namespace) -> None:
        if options.html:
            from holdfast.views.web.report import log_report  # noqa: PLC0415 - few ask for it

            about = [("size", log.about.size)]
            write_page(options.html, log_report(log.about.name, about, log.diagnosis, log.about.last_words))
        if options.json:
            print(log_as_json(log.about.name, log.diagnosis))
        else:
            print(log_as_text(log.about, log.diagnosis, sys.stdout.isatty(), options.verbose))

    def _tell_run(self, recording: Recording, options: argparse.Namespace) -> None:
        name, window, diagnosis = recording.run.name, recording.window, recording.diagnosis
        if options.html:
            write_page(options.html, report_of(recording))
        if options.json:
            print(as_json(name, window, diagnosis))
            return
        out = [*considered(diagnosis, True), *ruled_out(window, diagnosis)] if options.verbose else []
        colour, verbose = sys.stdout.isatty(), options.verbose
        print(as_text(name, window, diagnosis, recording.damage, colour, ruled_out=out, verbose=verbose))


def _code(diagnosis: Diagnosis) -> int:
    return 0 if diagnosis.cause is not None or diagnosis.outcome in ("completed", "recovered", "running") else 3


def _log(wanted: str | None, directory: str | None) -> ReadLog | None:
    """A log, where that is meant. A run of that very name comes before a file of that name, since ./NAME is a file too."""
    if wanted == "-":
        return read_stdin()
    if not wanted or (Path(wanted) / "journal").is_dir() or _is_run(wanted, directory):
        return None
    try:
        kind = os.stat(wanted).st_mode
    except (OSError, ValueError) as error:
        if "/" in wanted or Path(wanted).suffix in (".log", ".txt", ".out", ".err", ".gz"):
            raise UserError(f"no such log: {wanted}; give a file, a run's id, or - for stdin") from error
        return None
    if stat.S_ISDIR(kind):
        raise UserError(f"{wanted} is a directory and no run; give a log file or a run's id")
    return read_file(wanted)


def _is_run(wanted: str, directory: str | None) -> bool:
    return any(wanted in (run.name, run.name[16:]) for run in all_runs(directory))


def report_of(recording: Recording) -> str:
    from holdfast.views.web.document import RunDocument  # noqa: PLC0415
    from holdfast.views.web.report import run_report  # noqa: PLC0415

    document = RunDocument(recording.run)
    document.update()
    return run_report(document, recording)


def write_page(path: str, page: str) -> None:
    """As a whole or not at all, readable by its owner alone."""
    beside = f"{path}.{os.getpid()}.part"
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(page)
        os.replace(beside, path)  # noqa: PTH105
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(beside)  # noqa: PTH108
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"cannot write {path}: {reason}") from None
