from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path

from holdfast.checks import CHECKS
from holdfast.checks.contract import Here
from holdfast.checks.framework_import import imported
from holdfast.checks.runner import look_at_all
from holdfast.cli.errors import UserError
from holdfast.cli.run import working_directory
from holdfast.cli.run_store import search_directories
from holdfast.views.check_text import as_text

PATIENCE_S = 2.2  # for all of it together; starting and importing takes the rest of three seconds on a busy machine


class CheckVerb:
    """Says whether this machine is fit to train, before a run finds out: memory, limits, container, disks, GPUs, frameworks.

    holdfast check                          what is here, with the Python that `python` means
    holdfast check --python venv/bin/python for another environment
    holdfast check --framework              also imports the frameworks and asks them which GPUs they see

    Takes under three seconds without --framework, and changes nothing. Exits 1 when a line is bad, else 0.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the lines as JSON")
        parser.add_argument(
            "--python", metavar="PATH", help="the Python that runs the script (default: python on PATH)"
        )
        parser.add_argument("--framework", action="store_true", help="import the frameworks, too (seconds each)")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        began = time.monotonic()
        cwd = working_directory()
        here = Here(runs=cwd / search_directories(options.dir)[0], cwd=cwd, python=_python(options.python))
        lines = look_at_all(here, CHECKS, PATIENCE_S)
        if options.framework:
            lines += imported(here, lambda text: print(f"holdfast: {text}", file=sys.stderr, flush=True))
        is_bad = any(line.status == "bad" for line in lines)
        if options.json:
            print(json.dumps({"ok": not is_bad, "lines": [asdict(line) for line in lines]}, indent=2))
        else:
            width = shutil.get_terminal_size((120, 24)).columns
            print(as_text(lines, time.monotonic() - began, width, sys.stdout.isatty()))
        return 1 if is_bad else 0


def _python(named: str | None) -> str:
    if named is None:
        return shutil.which("python") or sys.executable
    found = shutil.which(named)
    if found is None:
        wrong = "is a directory" if Path(named).is_dir() else "is not there, or not executable"
        raise UserError(f"--python {named}: {wrong}; give the path of a Python, as in venv/bin/python")
    return os.path.abspath(found)  # noqa: PTH100 -- a link into an environment must stay one
