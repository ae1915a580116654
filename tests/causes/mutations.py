"""Drops a random tenth of all alternatives and sees that the examples notice: python -m tests.causes.mutations --rounds 10

The examples stay known. A round passes where at least one of them is no longer read, or names its cause no longer.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from holdfast.causes import EXCEPTIONS, LINES
from holdfast.causes.form import CauseRecord, Rule, Says
from holdfast.diagnosis.reading import clues
from tests.causes.test_examples import ALL, _why

SHARE = 0.1


def chosen(seed: int, share: float = SHARE) -> set[str]:
    """The patterns that are dropped."""
    patterns = sorted({says.pattern for _, says in ALL})
    return set(random.Random(seed).sample(patterns, round(share * len(patterns))))


@contextmanager
def without(dropped: set[str]) -> Iterator[None]:
    """Every rule that reads texts, without these alternatives."""
    kept = {"EXCEPTIONS": clues.EXCEPTIONS, "LINES": clues.LINES}
    try:
        for name, rules in (("EXCEPTIONS", EXCEPTIONS), ("LINES", LINES)):
            setattr(clues, name, [(cause, less) for cause, rule in rules if (less := _without(rule, dropped))])
        yield
    finally:
        for name, rules in kept.items():
            setattr(clues, name, rules)


def _without(rule: Rule, dropped: set[str]) -> Rule | None:
    """None where nothing is left of its words: an empty pattern would fit everything."""
    rest = tuple(says for says in rule.alternatives if says.pattern not in dropped)
    return replace(rule, alternatives=rest) if rest or not rule.alternatives else None


def lost(dropped: set[str], most: int | None = None) -> list[str]:
    """The examples of dropped alternatives that no longer name their cause."""
    found: list[str] = []
    proved: Sequence[tuple[CauseRecord, Says]] = [
        (record, says) for record, says in ALL if says.pattern in dropped and says.examples
    ]
    for record, says in proved:
        for example in says.examples:
            if record.id in _named(example.text) and not _still(record, example.text, dropped):
                found.append(f"{record.id}: {example.text[:100]!r}")
            if most is not None and len(found) >= most:
                return found
    return found


def _still(record: CauseRecord, text: str, dropped: set[str]) -> bool:
    with without(dropped):
        return record.id in _named(text)


def _named(text: str) -> set[str]:
    answer = _why(text)
    return {cause.id for cause in (answer.cause, *answer.also) if cause is not None}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    unnoticed = 0
    for round_ in range(options.rounds):
        began, dropped = time.monotonic(), chosen(options.seed + round_)
        red = lost(dropped)
        unnoticed += not red
        proved = sum(1 for _, says in ALL if says.pattern in dropped and says.examples)
        print(
            f"seed {options.seed + round_}: {len(dropped)} alternatives dropped, {proved} of them proved by examples: "
            f"{len(red)} examples turn red ({time.monotonic() - began:.1f} s){'' if red else '  NOT NOTICED'}"
        )
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
