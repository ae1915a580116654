"""The examples guard the rules: a rule that loses alternatives turns some of them red."""

from __future__ import annotations

from holdfast.diagnosis.reading import clues
from tests.causes.mutations import chosen, lost, without
from tests.causes.test_examples import ALL


def test_a_tenth_of_the_alternatives_is_not_dropped_unnoticed() -> None:
    dropped = chosen(seed=1)
    assert len(dropped) == round(0.1 * len({says.pattern for _, says in ALL})) > 50
    assert len(lost(dropped, most=3)) == 3


def test_nothing_is_lost_where_nothing_is_dropped() -> None:
    proved = {says.pattern for _, says in ALL if says.examples}
    some = set(sorted(proved)[::100])
    before = (clues.EXCEPTIONS, clues.LINES)
    with without(set()):
        assert (tuple(clues.EXCEPTIONS), tuple(clues.LINES)) == before
    assert lost(some) and before == (clues.EXCEPTIONS, clues.LINES), "the rules are put back"
