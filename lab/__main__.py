"""Runs the cases and prints the score: `python -m lab --quick`, `python -m lab --score --jobs 8`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from . import program, report, score
from .case import CASES, HANGS, NUMERICS, POLICIES, BadCase, Case, load_all
from .stage import CannotStage

PAGE = Path(__file__).parent.parent / "docs" / "lab.md"
FAILING, HEALTHY = "failing", "healthy"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        found = load_all(options.names, HANGS if options.hangs else NUMERICS if options.numerics else CASES)
        cases = [case for case in found if case.quick or not options.quick]
        if options.policy is not None:
            cases = [replace(case, policy=options.policy) for case in cases]
    except BadCase as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    if options.list:
        print(report.listing(cases))
        return 0
    _take_signals_as_usual()
    results = list(_results(cases, options))
    if options.json:
        print(json.dumps(score.as_json(results), indent=2))
    else:
        print(report.full(results) if options.score else score.table(results))
    if options.markdown is not None:
        options.markdown.write_text(report.page(results))
    return 0 if score.totals(results).passed else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="only the cases marked quick")
    folders = parser.add_mutually_exclusive_group()
    folders.add_argument(
        "--hangs", action="store_true", help="the programs that stand still, and those that only seem to"
    )
    folders.add_argument(
        "--numerics", action="store_true", help="the programs that train badly, and those that seem to"
    )
    parser.add_argument("--policy", choices=POLICIES, help="run the cases under this policy instead of their own")
    parser.add_argument("--only", choices=(FAILING, HEALTHY), help="only the failing or only the healthy programs")
    parser.add_argument("--bare", action="store_true", help="without Holdfast: do the cases themselves behave?")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs that run side by side (default: 1)")
    parser.add_argument("--seed", type=int, metavar="N", help="chooses the step or worker at which a fault strikes")
    parser.add_argument("--score", action="store_true", help="also the confusion, calibration, alarms and times")
    parser.add_argument("--json", action="store_true", help="the score as JSON")
    parser.add_argument(
        "--markdown", type=Path, nargs="?", const=PAGE, metavar="FILE", help=f"write the score's page ({PAGE.name})"
    )
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--keep", action="store_true", help="keep each run's scratch folder")
    return parser.parse_args(arguments)


def _results(cases: list[Case], options: argparse.Namespace) -> Iterator[score.Result]:
    """In the order of the cases, however many run at once."""
    runs = [(case, healthy) for case in cases for healthy in _twins(case, options.only, options.bare)]
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        yield from pool.map(lambda run: _told_result(*run, options), runs)


def _twins(case: Case, only: str | None, bare: bool) -> list[bool]:
    # What hangs once and is rescued stands for ever when nobody ends it.
    lost_when_bare = bare and case.outcome == "recovered" and case.folder.parent == HANGS
    twins = [False, True] if case.has_fault and not lost_when_bare else [True]
    return [healthy for healthy in twins if only is None or healthy == (only == HEALTHY)]


def _told_result(case: Case, healthy: bool, options: argparse.Namespace) -> score.Result:
    result = _result(case, healthy, options)
    told = f"{case.name} {result.program}: {result.verdict} ({result.seconds:.1f} s)"
    if result.stalled_after is not None:
        told += f" (stalled: said after {result.stalled_after:.0f} s)"
    if result.verdict != score.RIGHT:
        told += f": {result.got} {result.confidence or ''} {result.note}"
    print(told, file=sys.stderr, flush=True)
    return result


def _result(case: Case, healthy: bool, options: argparse.Namespace) -> score.Result:
    try:
        ran = program.run(case, healthy=healthy, bare=options.bare, keep=options.keep, seed=options.seed)
        bare = program.run(case, healthy=True, bare=True, seed=options.seed) if healthy and case.numerics else None
    except CannotStage as reason:
        return score.not_staged(case, str(reason), healthy=healthy)
    return (score.judge_bare if options.bare else score.judge)(case, ran, healthy=healthy, beside=bare)


def _take_signals_as_usual() -> None:
    """A background or nohup shell starts us with these ignored, and the programs would inherit that."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGXCPU):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
