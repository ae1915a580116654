"""The place in a tf.data pipeline, found by repeating: here with data sets that only count, as a shuffle does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.inside.script_state.data_position import ATTRIBUTE, Position
from holdfast.inside.script_state.refusal import CannotPutBack, CannotTake
from holdfast.inside.tensorflow import dataset_position, random_state, seams

pytest.importorskip("numpy")


class Part:
    def __init__(self, *inputs: Part, seed: int = 0) -> None:
        self.inputs, self.seed, self.made = inputs, seed, 0

    def order(self) -> int:
        return sum(one.order() for one in self.inputs)


class ShuffleDataset(Part):
    """Another order for each iterator that is made of it."""

    def order(self) -> int:
        self.made += 1
        return self.made + 100 * super().order()


class CacheDataset(Part):
    pass


class Numbers:
    def __init__(self, part: Part) -> None:
        order = part.order()
        self.items: Iterator[int] = iter([1000 * order + number for number in range(5)])


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(seams, "inputs_of", lambda part: list(part.inputs))
    monkeypatch.setattr(seams, "values_of", lambda part: [part.seed])
    monkeypatch.setattr(random_state, "restore", lambda _state: None)

    def iterated(part: Part, number: int) -> Any:
        made = dataset_position.made_of(part)
        dataset_position.count_one(part)
        iterator = Numbers(part)
        setattr(iterator, ATTRIBUTE, Position(number, part, made, "batches", lambda batch: repr(batch).encode()))
        return iterator

    return iterated


def taken(iterator: Any, count: int) -> dict[str, Any]:
    position: Position = getattr(iterator, ATTRIBUTE)
    for _ in range(count):
        position.took(next(iterator.items))
    return position.record()


def brought(iterator: Any, part: Part, record: dict[str, Any]) -> list[int]:
    dataset_position.bring_forward(iterator, part, record, Numbers, lambda one: next(one.items))
    return list(iterator.items)


def test_earlier_iterators_are_made_again_also_of_other_data_sets(pipeline: Callable[..., Any]) -> None:
    def script() -> tuple[Part, Part]:
        shuffled = ShuffleDataset(Part())
        return ShuffleDataset(shuffled), Part(shuffled)

    train, held_out = script()
    for epoch in range(3):
        pipeline(train, epoch)
        pipeline(held_out, epoch)
    last = pipeline(train, 3)
    record = taken(last, 2)
    again, _ = script()
    assert brought(pipeline(again, 0), again, record) == list(last.items)


def test_the_first_iterator_is_used_as_it_is(pipeline: Callable[..., Any]) -> None:
    train, again = ShuffleDataset(), ShuffleDataset()
    first, live = pipeline(train, 0), pipeline(again, 0)
    record = taken(first, 3)
    assert brought(live, again, record) == list(first.items) and again.made == 1


def test_other_data_is_refused(pipeline: Callable[..., Any]) -> None:
    record = taken(pipeline(ShuffleDataset(), 0), 1)
    other = ShuffleDataset(seed=1)
    with pytest.raises(CannotPutBack, match="is another one than before"):
        brought(pipeline(other, 0), other, record)
    same = ShuffleDataset()
    live = pipeline(same, 0)
    live.items = iter([7, 8])
    with pytest.raises(CannotPutBack, match="another order"):
        brought(live, same, record)
    live = pipeline(same, 1)
    live.items = iter([])
    with pytest.raises(CannotPutBack, match="more iterators were made"):
        brought(live, same, record)


def test_a_new_pipeline_over_what_is_not_shuffled_goes_on(pipeline: Callable[..., Any]) -> None:
    source = Part()
    for epoch in range(3):
        last = pipeline(ShuffleDataset(source, seed=epoch), epoch)
    record = taken(last, 2)
    again = ShuffleDataset(Part(), seed=2)
    assert brought(pipeline(again, 0), again, record) == list(last.items)


def test_what_another_process_cannot_repeat_is_refused(pipeline: Callable[..., Any]) -> None:
    fresh = dataset_position.Made([0], [])
    dataset_position.check(Part(ShuffleDataset(CacheDataset(Part()))), fresh)
    with pytest.raises(CannotTake, match="shuffled before cache"):
        dataset_position.check(CacheDataset(Part(ShuffleDataset())), fresh)
    source = ShuffleDataset()
    pipeline(source, 0)
    anew = ShuffleDataset(source)
    with pytest.raises(CannotTake, match="shuffled anew"):
        dataset_position.check(anew, dataset_position.made_of(anew))
