"""Runs the cases and prints the score: `python -m lab --quick`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator

from . import calibration, program, score
from .case import BadCase, Case, load_all
from .stage import CannotStage


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        cases = [case for case in load_all(options.names) if case.quick or not options.quick]
    except BadCase as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    if options.list:
        for case in cases:
            print(f"{case.name:32} {case.expected:26} {'quick' if case.quick else '':6} {case.title}")
        return 0
    _take_signals_as_usual()
    results = list(_results(cases, options))
    print(json.dumps(score.as_json(results), indent=2) if options.json else score.table(results))
    if options.score and not options.json:
        print("", calibration.confusion(results), "", calibration.calibration(results), "", sep="\n")
        print(calibration.summary(results))
    return 0 if score.totals(results).passed else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="only the cases marked quick")
    parser.add_argument("--bare", action="store_true", help="without Holdfast: do the cases themselves behave?")
    parser.add_argument("--json", action="store_true", help="the score as JSON")
    parser.add_argument("--score", action="store_true", help="also the confusion, calibration and false alarms")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--keep", action="store_true", help="keep each run's scratch folder")
    return parser.parse_args(arguments)


def _results(cases: list[Case], options: argparse.Namespace) -> Iterator[score.Result]:
    for case in cases:
        for healthy in (False, True):
            result = _result(case, healthy, options)
            print(f"{case.name} {result.program}: {result.verdict} ({result.seconds:.1f} s)", file=sys.stderr)
            yield result


def _result(case: Case, healthy: bool, options: argparse.Namespace) -> score.Result:
    try:
        ran = program.run(case, healthy=healthy, bare=options.bare, keep=options.keep)
    except CannotStage as reason:
        return score.not_staged(case, str(reason), healthy=healthy)
    return (score.judge_bare if options.bare else score.judge)(case, ran, healthy=healthy)


def _take_signals_as_usual() -> None:
    """A background or nohup shell starts us with these ignored, and the programs would inherit that."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGXCPU):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
