from __future__ import annotations

import argparse
import sys

from holdfast.cli.recording import read_run
from holdfast.cli.state import find_run
from holdfast.views.why_json import as_json
from holdfast.views.why_text import as_text


class WhyVerb:
    """Says how a run ended: one cause, the evidence, the fix.

    holdfast why                  the latest run
    holdfast why baseline --json  one by its name or id, for programs

    Exits 0 when it could answer, 3 when it cannot tell, 2 on misuse.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", nargs="?", metavar="RUN", help="a run's id or name (default: the latest)")
        parser.add_argument("--json", action="store_true", help="the answer as JSON")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        recording = read_run(find_run(options.run, options.dir))
        diagnosis = recording.diagnosis
        if options.json:
            print(as_json(recording.run.name, recording.window, diagnosis))
        else:
            print(as_text(recording.run.name, recording.window, diagnosis, recording.damage, sys.stdout.isatty()))
        told = diagnosis.cause is not None or diagnosis.outcome in ("completed", "recovered", "running")
        return 0 if told else 3
