from __future__ import annotations

import argparse
import json
import shutil

from holdfast.cli.errors import UserError
from holdfast.cli.recording import read_run
from holdfast.cli.run_store import all_runs
from holdfast.views.runs_table import as_row, as_table


class RunsVerb:
    """Lists the runs recorded here, newest last, or hands the record of one to other programs.

    holdfast runs
    holdfast runs export --parquet run.parquet            the latest, samples and events
    holdfast runs export baseline --tensorboard logs      one by its name or id
    holdfast runs export --tensorboard logs --follow      one that is going, until it ends
    holdfast runs export --prometheus /var/lib/node_exporter/holdfast.prom
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("do", nargs="?", choices=("export",), metavar="export", help="write a record for others")
        parser.add_argument("run", nargs="?", metavar="RUN", help="a run's id or name (default: the latest)")
        parser.add_argument("--json", action="store_true", help="the list as JSON")
        parser.add_argument("--parquet", metavar="FILE", help="samples there, events in FILE.events.parquet beside it")
        parser.add_argument("--tensorboard", metavar="DIR", help="event files in a folder of the run's name below DIR")
        parser.add_argument("--follow", action="store_true", help="with --tensorboard: go on until the run ends")
        parser.add_argument("--prometheus", metavar="FILE", help="all runs going on, for a textfile collector")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        if options.do == "export":
            from holdfast.cli.export import export  # noqa: PLC0415 - few need it

            return export(options)
        if options.parquet or options.tensorboard or options.prometheus or options.follow:
            raise UserError("to write a record for others: holdfast runs export RUN …")
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
