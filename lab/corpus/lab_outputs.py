"""What the laboratory's own programs print, without Holdfast: `python -m lab.corpus.lab_outputs [CASE ...]`.

Of the failing ones those that end with an error of their own: what is killed prints nothing that tells why. Of the healthy ones
those that only look dangerous: the twin of a failing program prints a few plain lines.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import program
from lab.case import Case, load_all
from lab.stage import CannotStage

from . import captured
from .capture import CURRENT, Environment, NotKept, environment, neutral
from .captured import Capture

FAMILY = "lab"


def output(case: Case, where: Environment) -> Capture | None:
    healthy = not case.has_fault
    if not healthy and 1 not in case.exit_code:
        return None
    try:
        ran = program.run(case, healthy=healthy, bare=True)
        text = neutral(ran.stdout + ran.stderr, where)
    except (CannotStage, NotKept) as why:
        print(f"{case.name}: not kept: {why}", file=sys.stderr, flush=True)
        return None
    print(f"{case.name}: kept", file=sys.stderr, flush=True)
    causes = () if healthy else case.accept
    return Capture(case.name, FAMILY, CURRENT, causes, ran.exit_code or 0, captured.shortened(text))


def main(names: list[str]) -> int:
    where = environment(CURRENT, Path(sys.executable))
    before = [one for one in captured.load_all() if one.family == FAMILY and names and one.program not in names]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: output(case, where), load_all(names)))
    captured.save(FAMILY, [*before, *(one for one in found if one is not None)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
