from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import sys
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.state import new_run
from holdfast.supervisor.relay import NeverStarted
from holdfast.supervisor.run import supervise
from holdfast.supervisor.task import Task

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)


class RunVerb:
    """Runs a command, watched and recorded. Nothing in it is edited; its output and exit code are its own.

    holdfast run python train.py --epochs 10
    holdfast run --policy observe --name baseline -- python train.py
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--policy",
            choices=("observe", "advise", "protect"),
            default="protect",
            help="watch only; also warn; also act (default: %(default)s)",
        )
        parser.add_argument("--memory", type=size, metavar="SIZE", help="host-memory budget of the job, such as 12G")
        parser.add_argument("--gpu-memory", type=size, metavar="SIZE", help="the same for each GPU")
        parser.add_argument("--name", default="", help="a name for this run")
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")
        parser.add_argument("--resume", nargs="?", const="", action=NotYet, help=argparse.SUPPRESS)
        parser.add_argument("--resume-args", action=NotYet, help=argparse.SUPPRESS)
        parser.add_argument("--checkpoint", choices=("off",), default="off", help=argparse.SUPPRESS)
        parser.add_argument("--max-restarts", choices=("0",), default="0", help=argparse.SUPPRESS)
        parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND…", help="what to run")

    def run(self, options: argparse.Namespace) -> int:
        if sys.platform != "linux":
            raise UserError(
                f"run works on Linux only so far, not on {sys.platform}; why and runs read records made there"
            )
        command = options.command[1:] if options.command[:1] == ["--"] else options.command
        check_command(command)
        if options.name and not re.fullmatch(r"[\w.-]{1,60}", options.name):
            raise UserError(f"--name {options.name!r}: letters, digits, '.', '_' and '-' only, 60 at most")
        directory, note = new_run(options.dir, options.name)
        if note:
            print(f"holdfast: {note}", file=sys.stderr)
        task = Task(
            command=tuple(command),
            directory=directory,
            cwd=working_directory(),
            policy=options.policy,
            name=options.name,
            memory_bytes=options.memory,
            gpu_memory_bytes=options.gpu_memory,
        )
        try:
            return supervise(task)
        except NeverStarted as error:
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)
            raise UserError(f"cannot start {command[0]}: {error}{_hint(error.errno, command[0])}") from None


def _hint(number: int, program: str) -> str:
    if number == errno.ENOEXEC:
        return f"; put its interpreter in front, as in: holdfast run bash {program}"
    return "; is the program in its first line (#!) there?" if number == errno.ENOENT else ""


class NotYet(argparse.Action):
    """Starting over without a word where the user asked to continue would be worse than refusing."""

    def __call__(self, *arguments: object, **_: object) -> None:
        raise UserError(f"{arguments[3]}: this version takes no checkpoints, so it cannot resume; start without it")


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


def size(text: str) -> int:
    match = SIZE.fullmatch(text.strip())
    if not match or not (number := float(match[1])):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 12G, 800M or 1.5GiB")
    if number > 1e9:
        raise argparse.ArgumentTypeError(f"{text[:20]!r}… is more memory than any machine has")
    return int(number * 1024 ** " kmgt".index(match[2].lower() or " "))
