"""How right `why` is on the captured outputs, and the levels that follow from it: `python -m lab.corpus.calibration`.

Every answer counts, also one to a healthy output, which is then wrong. Rules are mended from one half of the programs alone;
the levels are fitted on the other. The laboratory's own outputs are in neither: rules were written with them in view.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from holdfast.diagnosis.weighing import SURE
from holdfast.vocabulary import LEVELS

from . import captured
from .answers import Answer, answers, counts
from .lab_outputs import FAMILY as LAB
from .program import FITTING, MENDING, half

# The rule: the lowest border, in steps of 0.05, with 97 % right of all answers at or above it, and 90 % right in each tenth from
# it on, of 20 answers or more: the many surest answers must not hide that those near the border are not sure at all, and
# where few were seen there is no reason to be confident.
RIGHT_ABOVE, RIGHT_IN_EACH_TENTH, STEP = 0.97, 0.90, 0.05
LEAST_IN_A_TENTH = 20
BORDERS = tuple(round(step * STEP, 2) for step in range(round(SURE / STEP), 19))


def confident_border(found: Sequence[Answer]) -> float | None:
    """None where too few answers are there to fit it on, or no border keeps the rule."""
    told = [one for one in found if one.said]
    return next((border for border in BORDERS if _keeps_the_rule(told, border)), None)


def _keeps_the_rule(told: Sequence[Answer], border: float) -> bool:
    above = [one for one in told if one.confidence >= border]
    tenths = [_between(told, low, low + 0.1) for low in _tenths_from(border)]
    return all(len(some) >= LEAST_IN_A_TENTH and _right(some) >= RIGHT_IN_EACH_TENTH for some in tenths) and (
        _right(above) >= RIGHT_ABOVE
    )


def _tenths_from(border: float) -> list[float]:
    return [round(border + tenth / 10, 2) for tenth in range(5) if border + tenth / 10 <= 0.9 + 1e-9]


def _between(found: Sequence[Answer], low: float, high: float) -> list[Answer]:
    return [one for one in found if one.said and low - 1e-9 <= one.confidence < high - 1e-9]


def fitted(found: Sequence[Answer]) -> list[Answer]:
    """The answers that the levels are fitted on."""
    return [one for one in found if one.capture.family != LAB and half(one.capture.program) == FITTING]


def report(found: Sequence[Answer], *, verbose: bool = False) -> str:
    new = [one for one in found if one.capture.family != LAB]
    mending = [one for one in new if half(one.capture.program) == MENDING]
    fitting = fitted(found)
    border = confident_border(fitting)
    causes = {cause for one in new for cause in one.capture.causes}
    programs = {one.capture.program for one in new}
    sections = [
        f"captured outputs: {len(new)} of {len(programs)} programs in {len(_environments(new))} environments, "
        f"labelled with {len(causes)} causes; {len(found) - len(new)} more of the laboratory",
        f"all:          {counts(new)}\n"
        f"mending half: {counts(mending)}\n"
        f"fitting half: {counts(fitting)}\n"
        f"laboratory:   {counts([one for one in found if one.capture.family == LAB])}",
        "confidence, fitting half\n" + _table(_by_tenth(fitting)),
        "confidence, mending half\n" + _table(_by_tenth(mending)),
        "levels as they stand, fitting half\n" + _table(_by_level(fitting)),
        f"the rule gives: confident from {border}, probable from {SURE}; below it there is no cause\n"
        f"the source has: confident from {LEVELS['confident']}, probable from {LEVELS['probable']}",
    ]
    if verbose:
        sections.append("not right, mending half\n" + _table(_not_right(mending)))
    return "\n\n".join(sections)


def _right(found: Sequence[Answer]) -> float:
    return sum(one.right for one in found) / len(found)


def _environments(found: Sequence[Answer]) -> set[str]:
    return {one.capture.environment for one in found}


def _by_tenth(found: Sequence[Answer]) -> list[tuple[str, ...]]:
    rows = [("from", "to", "answers", "right", "share", "mean confidence")]
    for tenth in range(5, 10):
        low, high = tenth / 10, (tenth + 1) / 10
        rows.append((f"{low:.1f}", f"{high:.1f}", *_figures(_between(found, low, high))))
    return rows


def _by_level(found: Sequence[Answer]) -> list[tuple[str, ...]]:
    rows = [("level", "from", "answers", "right", "share", "mean confidence")]
    above = 2.0
    for name, least in LEVELS.items():
        if least >= SURE:
            rows.append((name, f"{least:.2f}", *_figures(_between(found, least, above))))
        above = least
    return rows


def _figures(band: Sequence[Answer]) -> tuple[str, str, str, str]:
    if not band:
        return "0", "0", "-", "-"
    mean = sum(one.confidence for one in band) / len(band)
    return str(len(band)), str(sum(one.right for one in band)), f"{_right(band):.0%}", f"{mean:.2f}"


def _not_right(found: Sequence[Answer]) -> list[tuple[str, ...]]:
    rows = Counter(
        (
            one.capture.family,
            one.capture.program,
            one.capture.environment,
            "|".join(one.capture.causes) or "healthy",
            one.said or "no answer",
            f"{one.confidence:.2f}",
        )
        for one in found
        if not one.right
    )
    return sorted(rows)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return "none"
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.corpus.calibration", description=__doc__)
    parser.add_argument(
        "--verbose", action="store_true", help="also what was not answered rightly in the half to mend from"
    )
    options = parser.parse_args(arguments)
    found = answers(captured.load_all())
    print(report(found, verbose=options.verbose))
    return 0 if confident_border(fitted(found)) == LEVELS["confident"] else 1


if __name__ == "__main__":
    sys.exit(main())
