from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.plan_process import CannotPlan, Measuring, measure
from holdfast.cli.run import check_command, seconds, size, working_directory
from holdfast.inside.headroom import left
from holdfast.planning.plan import Plan, Room, plan
from holdfast.supervisor.budget import groups
from holdfast.views.plan_text import as_text

CANNOT_TELL = 3


class PlanVerb:
    """Says what fits, before a run finds out: memory of a training step by kind and by layer, the largest batch, what helps.

    holdfast plan python train.py
    holdfast plan --batch 512 --memory 16G python train.py --epochs 10

    Starts the script, unedited, stops it at its first training steps, runs those on a few sizes of its own first batch, and
    ends it. What it writes below its directory goes nowhere where that can be had, and is named otherwise.
    Exits 0 when the batch fits, 1 when it does not, 3 when that cannot be told.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--batch", type=batch_size, metavar="N", help="the batch to plan for (default: the script's own)"
        )
        parser.add_argument(
            "--memory", type=size, metavar="SIZE", help="of the machine it is to run on (default: this one)"
        )
        parser.add_argument("--gpu-memory", type=size, metavar="SIZE", help="the same for its card")
        parser.add_argument(
            "--seconds", type=seconds, default=10.0, metavar="S", help="how long larger batches are tried (default: 10)"
        )
        parser.add_argument("--timeout", type=seconds, default=600.0, metavar="S", help="for all of it (default: 600)")
        parser.add_argument("--json", action="store_true", help="the plan as JSON")
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the plan as a page, too")
        parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND…", help="what to plan for")

    def run(self, options: argparse.Namespace) -> int:
        if sys.platform != "linux":
            raise UserError(f"plan works on Linux only so far, not on {sys.platform}")
        command = options.command[1:] if options.command[:1] == ["--"] else options.command
        check_command(command)
        found = left(groups())
        here = found.bytes if found is not None else None
        wanted = Measuring(
            command=tuple(command), cwd=working_directory(), batch=options.batch, seconds=options.seconds,
            timeout_s=options.timeout, room_bytes=here, limit_bytes=options.memory,
        )  # fmt: skip
        try:
            answer = measure(wanted, say)
        except CannotPlan as reason:
            print(f"holdfast: {reason}", file=sys.stderr)
            return CANNOT_TELL
        of = "the machine asked about" if options.memory or options.gpu_memory else "this machine"
        room = Room(options.memory or here, options.gpu_memory or answer.card_bytes, of)
        made = plan(answer.measured, room, options.batch)
        self._show(made, answer.notes, options)
        return 0 if made.fits else 1

    def _show(self, made: Plan, notes: tuple[str, ...], options: argparse.Namespace) -> None:
        if options.html is not None:
            from holdfast.views.web.plan_page import plan_page  # noqa: PLC0415 - few need it

            options.html.write_text(plan_page(made, options.command, notes))
        if options.json:
            print(json.dumps({**made.as_json(), "notes": list(notes)}, indent=2))
        else:
            width = shutil.get_terminal_size((120, 24)).columns
            print(as_text(made, width, sys.stdout.isatty()))
            for note in notes:
                print(f"\n{note}")


def say(text: str) -> None:
    print(f"holdfast: {text}", file=sys.stderr, flush=True)


def batch_size(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is no batch size; write it as 64")
    return int(text)
