"""The command line: one file per verb, registered in one visible list."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from holdfast import __version__
from holdfast.cli.errors import UserError

# Where each verb's class lies. It is imported when it is asked for: `run` must start in milliseconds.
VERBS = {
    "run": ("run", "RunVerb"),
    "why": ("why", "WhyVerb"),
    "log": ("log", "LogVerb"),
    "stacks": ("stacks", "StacksVerb"),
    "top": ("top", "TopVerb"),
    "serve": ("serve", "ServeVerb"),
    "runs": ("runs", "RunsVerb"),
    "check": ("check", "CheckVerb"),
    "audit": ("audit", "AuditVerb"),
    "plan": ("plan", "PlanVerb"),
}
INTERNAL = {  # started by Holdfast itself
    "beside": ("watch_beside", "WatchBesideVerb"),
    "failure-report": ("failure_report", "FailureReportVerb"),
    "after-failure": ("after_failure", "AfterFailureVerb"),
    "panel": ("panel", "PanelVerb"),
}

USAGE = """\
usage: holdfast VERB …

Keeps neural-network training alive, and says why it died.

  holdfast run python train.py     run a command, watched and recorded
  holdfast why                     how the latest run ended, with evidence and a fix
  holdfast log                     what was recorded of it, line by line
  holdfast stacks                  where every thread of a running job stands
  holdfast top                     how a run stands, live in the terminal
  holdfast serve                   the same in a browser: charts, live, two runs side by side
  holdfast runs                    the runs recorded here
  holdfast check                   is this machine fit to train, and what to mend
  holdfast audit data/             is this data fit to train on, and a cleaned copy of it
  holdfast plan python train.py    what fits: memory by layer, the largest batch, what a bigger one takes

`holdfast VERB --help` tells more. `holdfast --version` prints the version."""


class Verb(Protocol):
    """What is typed after `holdfast`; its docstring is the help text."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int: ...


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            return _answer(words)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except UserError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # our own output: a pipe whose reader has gone, a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's own flush does not complain
        if not isinstance(error, BrokenPipeError):
            print(f"holdfast: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _answer(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"holdfast {__version__}")
        return 0
    return _dispatch(words[0], words[1:])


def _dispatch(verb: str, words: list[str]) -> int:
    place = VERBS.get(verb) or INTERNAL.get(verb)
    if place is None:
        raise UserError(f"no such verb: {verb}; there are {', '.join(VERBS)} (to run it: holdfast run {verb} …)")
    module, name = place
    verb_class: type[Verb] = getattr(importlib.import_module(f"holdfast.cli.{module}"), name)
    parser = Parser(
        prog=f"holdfast {verb}",
        description=verb_class.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb_object = verb_class()
    verb_object.arguments(parser)
    if verb == "run":
        from holdfast.cli.run import spelled_out  # noqa: PLC0415

        words = spelled_out(words, parser)
    return verb_object.run(parser.parse_args(words))


class Parser(argparse.ArgumentParser):
    """One line that names what is wrong and what to do, exit 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UserError(f"{message} (see {self.prog} --help)")
