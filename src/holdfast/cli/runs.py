from __future__ import annotations

import argparse
import json
import shutil

from holdfast.cli.errors import UserError
from holdfast.cli.recording import read_run
from holdfast.cli.run_store import all_runs
from holdfast.views.runs_table import as_row, as_table


class RunsVerb:
    """Lists the runs recorded here, newest last.

    holdfast runs
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the list as JSON")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        rows, unreadable = [], []
        for run in all_runs(options.dir):
            try:
                recording = read_run(run)
            except UserError as error:  # one run of a newer version does not hide the others
                unreadable.append(f"{run.name}: {error}")
            else:
                rows.append(as_row(run.name, recording.window, recording.diagnosis))
        if options.json:
            print(json.dumps(rows, indent=2))
        elif rows:
            print(as_table(rows, shutil.get_terminal_size((100, 24)).columns))
        else:
            print("no runs here yet; record one with: holdfast run COMMAND")
        for line in unreadable:
            print(line)
        return 0
