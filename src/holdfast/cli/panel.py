from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.recording import any_alive, read_run
from holdfast.journal import Journal, NewerJournal
from holdfast.views.notebook_panel import Before, as_html, as_text, news
from holdfast.views.overview import RunReader
from holdfast.vocabulary import Event

LOOK_S = 1.0
DIED = ("failed", "unknown", "stalled")
EARLIER_LOOKED_AT = 20  # runs, the newest first: those of other programs lie between


class PanelVerb:
    """Prints a notebook's panel, a line of JSON each time it changes; `holdfast.attach()` starts it.
    Not for the command line.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", type=Path)
        parser.add_argument("--first", action="store_true", help="also tell of the run before, if its kernel died")

    def run(self, options: argparse.Namespace) -> int:
        """Ends with its run, or with the process that reads it."""
        kernel = os.getppid()
        reader = RunReader(options.run, any_alive)
        before = earlier_death(options.run) if options.first else None
        told = ""
        while os.getppid() == kernel:
            overview = reader.read()
            moments = reader.moments()
            panel = {
                "html": as_html(overview, moments, before),
                "text": as_text(overview, moments, before),
                "news": news(moments),
            }
            if (line := json.dumps(panel)) != told:
                print(line, flush=True)
                told = line
            if overview.since is not None and not overview.is_live:
                break
            time.sleep(LOOK_S)
        return 0


def earlier_death(run: Path) -> Before | None:
    """The verdict of the run that was attached before this one from the same notebook, where its kernel died."""
    earlier = sorted((path for path in run.parent.iterdir() if path.is_dir() and path.name < run.name), reverse=True)
    here = _attached(run)
    for path in earlier[:EARLIER_LOOKED_AT]:
        start = _attached(path)
        if start is None or not _same_notebook(start, here):
            continue
        try:
            found = read_run(path)
        except UserError:
            return None
        return Before.of(path.name, found.diagnosis) if found.diagnosis.outcome in DIED else None
    return None


def _attached(run: Path) -> Event | None:
    try:
        starts = Journal(run / "journal").events("run.start")
    except (NewerJournal, OSError):
        return None
    return starts[0] if starts and starts[0].data.get("attached") else None


def _same_notebook(start: Event, here: Event | None) -> bool:
    """Jupyter names the notebook in the kernel's environment; where it does not, the directory has to do."""
    names = {str(event.data.get("notebook") or "") for event in (start, here) if event is not None}
    return len(names - {""}) <= 1
