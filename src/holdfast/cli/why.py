from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.pasted_log import ReadLog, read_file, read_stdin
from holdfast.cli.recording import Recording, read_run
from holdfast.cli.run_store import all_runs, find_run
from holdfast.diagnosis.ruled_out import ruled_out
from holdfast.masking import masked_command
from holdfast.views.why_html import as_html
from holdfast.views.why_json import as_json, log_as_json
from holdfast.views.why_text import as_text, considered, last_words, log_as_text, not_working
from holdfast.vocabulary import Diagnosis


class WhyVerb:
    """Says how a run ended: one cause, the evidence, the fix.

    holdfast why                  the latest run
    holdfast why baseline --json  one by its name or id, for programs
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
        parser.add_argument("--html", metavar="FILE", help="also write the answer as a page of its own")
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
        recording = read_run(find_run(options.run, options.dir))
        self._tell_run(recording, options)
        return _code(recording.diagnosis)

    def _tell_log(self, log: ReadLog, options: argparse.Namespace) -> None:
        if options.html:
            _write(
                options.html, as_html(log.about.name, [("size", log.about.size)], log.diagnosis, log.about.last_words)
            )
        if options.json:
            print(log_as_json(log.about.name, log.diagnosis))
        else:
            print(log_as_text(log.about, log.diagnosis, sys.stdout.isatty(), options.verbose))

    def _tell_run(self, recording: Recording, options: argparse.Namespace) -> None:
        name, window, diagnosis = recording.run.name, recording.window, recording.diagnosis
        if options.html:
            start = next(iter(window.events("run.start")), None)
            command = " ".join(masked_command([*map(str, start.data["command"])])) if start else "?"
            about = [("command", command), *(("not working here", text) for text in not_working(window))]
            _write(options.html, as_html(name, about, diagnosis, last_words(window)))
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


def _write(path: str, page: str) -> None:
    try:
        Path(path).write_text(page, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"cannot write {path}: {reason}") from None
