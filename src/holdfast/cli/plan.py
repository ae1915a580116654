from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.plan_process import CannotPlan, Measuring, measure
from holdfast.cli.run import check_command, seconds, size, working_directory
from holdfast.cli.run_store import make_state, search_directories
from holdfast.inside.headroom import left
from holdfast.planning.plan import Plan, Room, plan
from holdfast.supervisor import known_micro_batches
from holdfast.supervisor.budget import groups
from holdfast.supervisor.run_spec import RunSpec
from holdfast.views.plan_text import as_text

CANNOT_TELL = 3
SURELY_NOT_RATIO = 1.1  # of what there is: what is nearer to it may go through, and is not cut beforehand


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
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")
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
        notes = answer.notes
        if options.batch is None and (parts := parts_to_begin_with(made)):
            wanted_by_run = RunSpec(
                tuple(command), search_directories(options.dir)[0].absolute() / "runs" / "plan", working_directory(),
                memory_bytes=options.memory, gpu_memory_bytes=options.gpu_memory,
            )  # fmt: skip
            notes = (*notes, remembered(wanted_by_run, parts))
        self._show(made, notes, options)
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


def parts_to_begin_with(made: Plan) -> int:
    """Into which a run had better cut the script's own batch at once; 0 where it may well go through whole."""
    limits = ((made.host_bytes, made.room.host), (made.gpu_bytes, made.room.gpu))
    surely = any(limit is not None and needed > SURELY_NOT_RATIO * limit for needed, limit in limits)
    return -(-made.batch // made.micro_batch) if surely and made.micro_batch else 0


def remembered(spec: RunSpec, parts: int) -> str:
    """As a run does that had to find out (`known_micro_batches`)."""
    assert spec.directory is not None
    try:
        make_state(spec.directory.parent.parent)
    except OSError as error:
        return f"a run will have to find its micro-batches by itself: nothing can be kept here ({error.strerror})"
    known_micro_batches.remember(spec, parts)
    return f"holdfast run of the same command begins with {parts} micro-batches a batch"


def say(text: str) -> None:
    print(f"holdfast: {text}", file=sys.stderr, flush=True)


def batch_size(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is no batch size; write it as 64")
    return int(text)
