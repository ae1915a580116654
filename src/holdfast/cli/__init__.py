"""The command line: one file per verb, registered in one visible list."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from holdfast import __version__
from holdfast.cli.errors import UserError

VERBS = ("run", "why", "log", "stacks", "runs", "check")

USAGE = """\
usage: holdfast VERB …

Keeps neural-network training alive, and says why it died.

  holdfast run python train.py     run a command, watched and recorded
  holdfast why                     how the latest run ended, with evidence and a fix
  holdfast log                     what was recorded of it, line by line
  holdfast stacks                  where every thread of a running job stands
  holdfast runs                    the runs recorded here
  holdfast check                   is this machine fit to train, and what to mend

`holdfast VERB --help` tells more. `holdfast --version` prints the version."""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"holdfast {__version__}")
        return 0
    try:
        code = _dispatch(words[0], words[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
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


def _dispatch(verb: str, words: list[str]) -> int:
    if verb not in (*VERBS, "beside"):
        raise UserError(f"no such verb: {verb}; there are {', '.join(VERBS)} (to run it: holdfast run {verb} …)")
    # A verb is imported when it is asked for: `run` must start in milliseconds.
    if verb == "run":
        from holdfast.cli.run import RunVerb as Verb  # noqa: PLC0415
    elif verb == "why":
        from holdfast.cli.why import WhyVerb as Verb  # type: ignore[assignment] # noqa: PLC0415
    elif verb == "log":
        from holdfast.cli.log import LogVerb as Verb  # type: ignore[assignment] # noqa: PLC0415
    elif verb == "stacks":
        from holdfast.cli.stacks import StacksVerb as Verb  # type: ignore[assignment] # noqa: PLC0415
    elif verb == "check":
        from holdfast.cli.check import CheckVerb as Verb  # type: ignore[assignment] # noqa: PLC0415
    elif verb == "beside":
        from holdfast.cli.watch_beside import WatchBesideVerb as Verb  # type: ignore[assignment] # noqa: PLC0415
    else:
        from holdfast.cli.runs import RunsVerb as Verb  # type: ignore[assignment] # noqa: PLC0415
    parser = Parser(
        prog=f"holdfast {verb}",
        description=Verb.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb_object = Verb()
    verb_object.arguments(parser)
    if verb == "run":
        from holdfast.cli.run import spelled_out  # noqa: PLC0415

        words = spelled_out(words, parser)
    return verb_object.run(parser.parse_args(words))


class Parser(argparse.ArgumentParser):
    """One line that names what is wrong and what to do, exit 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UserError(f"{message} (see {self.prog} --help)")
