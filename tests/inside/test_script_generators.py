"""Generators of the script's own: taken at their `yield`, put back into one that a new process has made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.inside.script_state import loop_heads, source_position
from holdfast.inside.script_state.begun_further_on import BegunFurtherOn
from holdfast.inside.script_state.frames import key_of
from holdfast.inside.script_state.generators import Generators
from holdfast.inside.script_state.object_graph import Graph, Traits
from holdfast.inside.script_state.object_restore import Restoration
from holdfast.inside.script_state.refusal import CannotPutBack, CannotTake

TRAITS = Traits(lambda _one: False, lambda *_: False, lambda kind: kind.__new__(kind))


def totals(numbers: list[int]) -> Iterator[int]:
    total = 0
    for number in numbers:
        total += number
        yield total


def counted(step: int) -> Iterator[int]:
    seen = 0
    while True:
        seen += step
        yield seen


def delegating(numbers: list[int]) -> Iterator[int]:
    yield from totals(numbers)


def advanced(generator: Iterator[int], items: int) -> Any:
    for _ in range(items):
        next(generator)
    return generator


def put_back(saved: Any, live: Any) -> Any:
    kinds = Generators(lambda _value: False).kinds()
    graph = Graph(kinds, TRAITS)
    ref = graph.take(saved)
    restoration = Restoration(graph.nodes, Generators(lambda _value: False).kinds(), TRAITS)
    restoration.bind(ref, live)
    found = restoration.object_of(ref)
    restoration.fill()
    return found


@pytest.mark.parametrize("begun", [0, 1])
def test_a_generator_goes_on_where_another_one_stood(begun: int) -> None:
    live = advanced(totals([1, 2, 3, 4]), begun)
    assert list(put_back(advanced(totals([1, 2, 3, 4]), 3), live)) == [10]
    endless = advanced(counted(1), begun)
    assert next(put_back(advanced(counted(5), 4), endless)) == 25


def test_one_that_has_not_begun_or_is_over_is_left_as_it_is() -> None:
    assert list(put_back(totals([7]), totals([1, 2]))) == [1, 3]
    over = totals([7])
    assert list(over) == [7] and list(put_back(over, totals([1, 2]))) == [1, 3]


def test_what_cannot_be_exact_is_refused() -> None:
    with pytest.raises(CannotTake, match="delegating is in the middle of its work"):
        put_back(advanced(delegating([1, 2]), 1), delegating([1, 2]))
    with pytest.raises(CannotPutBack, match="totals does not stand where it stood"):
        put_back(advanced(totals([1, 2]), 1), advanced(totals([]), 0))


def test_two_of_one_code_at_different_places_are_refused() -> None:
    graph = Graph(Generators(lambda _value: False).kinds(), TRAITS)
    with pytest.raises(CannotTake, match="two generators of totals are under way"):
        graph.take([advanced(totals([1, 2, 3]), 1), advanced(totals([1, 2, 3]), 2)])


def rows(size: int) -> Iterator[int]:
    for begin in range(0, 10, size):
        yield begin + size


def test_a_range_in_a_generator_begins_further_on() -> None:
    saved = advanced(rows(2), 4)
    frame = saved.gi_frame
    heads = loop_heads.taken(frame, source_position.standing(frame), lambda _value: False)
    assert [(head.kind, head.value) for head in heads] == [("range", 6)]
    plan = BegunFurtherOn([], [], [__name__], lambda do, *args: do(*args), {key_of(rows.__code__): heads})
    plan.install()
    try:
        live = rows(2)
        assert next(live) == 8
    finally:
        plan.remove()
    assert list(put_back(saved, live)) == [10]


def test_an_enumerate_around_a_generator_counts_on() -> None:
    plan = BegunFurtherOn([], [], [__name__], lambda do, *args: do(*args))
    plan.install()
    try:
        items = totals([1, 2, 3])
        numbered = enumerate(items)
        assert next(numbered) == (0, 1)
        plan.count_on(items, 7)
    finally:
        plan.remove()
    assert next(numbered) == (8, 3)
