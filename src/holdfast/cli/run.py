from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.errors import UserError
from holdfast.cli.failure_report import after_run
from holdfast.cli.run_store import new_run
from holdfast.fleet import membership
from holdfast.inside import rank_identity
from holdfast.policy.hang import TIMEOUT_S
from holdfast.supervisor.relay import NeverStarted
from holdfast.supervisor.run import supervise
from holdfast.supervisor.run_spec import PLACEHOLDER, RunSpec
from holdfast.supervisor.run_start import keep_exact_command
from holdfast.units import bytes_of
from holdfast.vocabulary import Policy

if TYPE_CHECKING:
    from holdfast.cli.resume import Resumed


class RunVerb:
    """Runs a command, watched and recorded. Nothing in it is edited; its output and exit code are its own.

    holdfast run python train.py --epochs 10
    holdfast run --policy observe --name baseline -- python train.py
    holdfast run --resume python train.py
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--policy",
            choices=tuple(map(str, Policy)),
            default=str(Policy.PROTECT),
            help="watch only; also warn; also act (default: %(default)s)",
        )
        parser.add_argument("--memory", type=size, metavar="SIZE", help="host-memory budget of the job, such as 12G")
        parser.add_argument("--gpu-memory", type=size, metavar="SIZE", help="the same for each GPU")
        parser.add_argument("--name", default="", help="a name for this run")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")
        parser.add_argument(
            "--checkpoint",
            type=interval,
            default="auto",
            metavar="auto|off|SECONDS",
            help="how often the state of training is saved: as its cost allows, never, or every so many seconds",
        )
        parser.add_argument(
            "--max-restarts",
            type=count,
            default=3,
            metavar="N",
            help="how often in a row a failed script is started again without a newer checkpoint (default: %(default)s)",
        )
        parser.add_argument(
            "--hang-timeout",
            type=seconds,
            default=TIMEOUT_S,
            metavar="SECONDS",
            help="how long a job that has trained may stand still before it is ended and started again (default: "
            "%(default)s); one that is proven to be deadlocked is ended sooner",
        )
        parser.add_argument(
            "--resume",
            metavar="RUN",
            help="written --resume or --resume=RUN: go on where the latest run of this command, or that one, stopped; "
            "without COMMAND the recorded one is used",
        )
        parser.add_argument(
            "--resume-args",
            type=resume_words,
            metavar="ARGS",
            help="for scripts that resume by an option of their own: what to append to COMMAND when it is started again, "
            'such as "--resume {checkpoint:out/*.pt}", where the newest file of that pattern is put in; a bare '
            "{checkpoint} is the newest below the working directory that is named like one. Holdfast then keeps none "
            "of its own",
        )
        _failure_arguments(parser)
        parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND…", help="what to run")

    def run(self, options: argparse.Namespace) -> int:
        if sys.platform != "linux":
            raise UserError(
                f"run works on Linux only so far, not on {sys.platform}; why and runs read records made there"
            )
        command = options.command[1:] if options.command[:1] == ["--"] else options.command
        resumed = _resumed(options, command) if options.resume is not None else None
        command = list(resumed.command) if resumed is not None else command
        check_command(command)
        if options.name and not re.fullmatch(r"[\w.-]{1,60}", options.name):
            raise UserError(f"--name {options.name!r}: letters, digits, '.', '_' and '-' only, 60 at most")
        directory, note = new_run(options.dir, options.name)
        if note:
            print(f"holdfast: {note}", file=sys.stderr)
        if resumed is not None:
            _take_over(resumed, directory)
        identity = rank_identity.of(os.environ)  # one rank cannot join again alone: to start all again is the engine's
        spec = RunSpec(
            command=tuple(command),
            directory=directory,
            cwd=working_directory(),
            policy=Policy(options.policy),
            name=options.name,
            memory_bytes=options.memory,
            gpu_memory_bytes=options.gpu_memory,
            checkpoint=options.checkpoint,
            max_restarts=options.max_restarts if identity is None else 0,
            hang_timeout_s=options.hang_timeout,
            resume_args=options.resume_args or "",
            resumed_from=resumed.run.name if resumed is not None else "",
            resumed_step=resumed.step if resumed is not None else None,
            began=resumed.began if resumed is not None else time.time(),
            micro_batches=resumed.micro_batches if resumed is not None else None,
            on_failure=options.on_failure,
            notify=options.notify or "",
            options=tuple(getattr(options, "typed", ())),
        )
        if directory is not None:
            keep_exact_command(directory, command)
            if identity is not None:
                membership.keep(directory, identity)
        try:
            code = supervise(spec, partial(after_run, directory, spec.policy))
        except NeverStarted as error:
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)
            raise UserError(f"cannot start {command[0]}: {error}{_hint(error.errno, command[0])}") from None
        if code != 0 and (spec.on_failure or spec.notify):
            from holdfast.supervisor.after_failure import start_and_wait  # noqa: PLC0415 - few need it

            start_and_wait(spec)
        return code


def _failure_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on-failure",
        metavar="COMMAND",
        default="",
        help="a shell command that is run once when the run has failed: the verdict as JSON on its standard input, "
        "HOLDFAST_RUN, HOLDFAST_OUTCOME and HOLDFAST_CAUSE in its environment; 60 s at most",
    )
    parser.add_argument(
        "--notify",
        metavar="URL",
        type=address,
        help="where the verdict of a run that has failed is sent as JSON (POST, http or https); 10 s at most",
    )


def _hint(number: int, program: str) -> str:
    if number == errno.ENOEXEC:
        return f"; put its interpreter in front, as in: holdfast run bash {program}"
    return "; is the program in its first line (#!) there?" if number == errno.ENOENT else ""


def spelled_out(words: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """A bare --resume takes no word after it: that is the command. The options as typed are kept for a later resume."""
    takes_word = {name for action in parser._actions if action.nargs is None for name in action.option_strings}
    spelled, typed = list(words), []
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != "--":
        end = i + 1
        if words[i] == "--resume":
            spelled[i] = "--resume="
        elif words[i] in takes_word:
            end += 1
        if words[i].partition("=")[0] != "--resume":
            typed += words[i:end]
        i = end
    parser.set_defaults(typed=typed)
    return spelled


def _resumed(options: argparse.Namespace, command: list[str]) -> Resumed:
    from holdfast.cli.resume import resumable  # noqa: PLC0415 - few need it

    if options.policy != Policy.PROTECT or (options.checkpoint == "off" and not options.resume_args):
        wrong = f"--policy {options.policy}" if options.policy != Policy.PROTECT else "--checkpoint off"
        raise UserError(f"--resume: with {wrong} Holdfast restores nothing; leave one of the two out")
    return resumable(options.resume, command, working_directory(), options.dir, options.resume_args or "")


def _take_over(resumed: Resumed, directory: Path | None) -> None:
    from holdfast.cli.resume import take_over  # noqa: PLC0415

    if directory is None:
        raise UserError("--resume: nothing can be written here, so nothing can be resumed")
    try:
        take_over(resumed, directory)
    except UserError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    at = f" from step {resumed.step}" if resumed.step is not None else ""
    print(f"holdfast: resuming {resumed.run.name}{at}", file=sys.stderr)


def working_directory() -> Path:
    """Also where it has been deleted, in which a command may still run."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))


def check_command(command: list[str]) -> None:
    if not command or not command[0]:
        raise UserError("no command given; for example: holdfast run python train.py")
    program = command[0]
    if shutil.which(program):
        return
    path = Path(program)
    if path.is_dir():
        raise UserError(f"{program} is a directory, not a command")
    if path.is_file():
        if path.suffix == ".py":
            raise UserError(f"{program} is not executable; did you mean: holdfast run python {program}")
        raise UserError(f"{program} is not executable; make it so with: chmod +x {program}")
    raise UserError(f"command not found: {program}; is it spelled right, and its environment active?")


def interval(text: str) -> str | float:
    if text in ("auto", "off"):
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor off nor a number of seconds")
    return seconds


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds; write it as 300")
    return value


def address(text: str) -> str:
    from holdfast.actions.post_verdict import address_trouble  # noqa: PLC0415 - HTTP weighs some MiB, and few need it

    if trouble := address_trouble(text):
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: {trouble}")
    return text


def count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text!r} is no count; write it as 3, or 0 for none")
    return int(text)


def resume_words(text: str) -> str:
    """Checked before anything runs: when it is needed nobody may be there to mend it."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if not words or any("{" in PLACEHOLDER.sub("", word) for word in words):
        raise argparse.ArgumentTypeError(f'{text!r}: write it as "--resume {{checkpoint:out/*.pt}}"')
    return text


def size(text: str) -> int:
    try:
        return bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
