"""When an error ends the script, its arrays are told: names, shapes, types, ranges; and the script's own hook still runs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from holdfast.causes import CAUSES
from holdfast.diagnosis.batch_at_failure import with_batch
from holdfast.inside import batch_at_failure
from holdfast.vocabulary import Event, Finding
from tests.story import START, story

numpy = pytest.importorskip("numpy")


class Told:
    steps, epoch_number = 38, 2

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def event(self, kind: str, **data: Any) -> None:
        self.events.append((kind, data))


def fails(inputs: Any, labels: Any, text: str = "a word") -> None:
    raise IndexError(f"Target 7 is out of bounds {len(inputs)} {len(labels)} {text}")


def facts_of(*arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    recorder, before = Told(), sys.excepthook
    seen: list[Any] = []
    sys.excepthook = lambda *error: seen.append(error)
    try:
        batch_at_failure.install(recorder)  # type: ignore[arg-type]
        try:
            fails(*arguments)
        except IndexError as error:
            sys.excepthook(IndexError, error, error.__traceback__)
    finally:
        sys.excepthook = before
    assert len(seen) == 1, "the hook that was there"
    return recorder.events


def test_arrays_at_hand_are_told_with_the_row_of_the_largest_label() -> None:
    ((kind, told),) = facts_of(numpy.zeros((4, 3), "float32"), numpy.array([1, 7, 0, 2]))
    assert kind == "data.at_failure" and told["step"] == 39
    by_name = {one["name"]: one for one in told["variables"]}
    assert by_name["inputs"] == {"name": "inputs", "shape": [4, 3], "dtype": "float32"}
    assert by_name["labels"] == {"name": "labels", "shape": [4], "dtype": "int64", "min": 0, "max": 7, "row_of_max": 1}


def test_tensors_are_told_alike_and_nothing_is_told_without_any() -> None:
    torch = pytest.importorskip("torch")
    ((_, told),) = facts_of(torch.zeros(4, 3, requires_grad=True), torch.tensor([[0, 9], [1, 2]]))
    assert [one["dtype"] for one in told["variables"]][:2] == ["float32", "int64"]
    assert told["variables"][1]["row_of_max"] == 0 and told["variables"][1]["max"] == 9
    assert facts_of([1], [2]) == []


def at_failure(**batch: Any) -> list[Event]:
    inputs = {"name": "x", "shape": [32, 15], "dtype": "float32"}
    labels = {"name": "y", "shape": [32], "dtype": "int64", "min": 0, "max": 7, "row_of_max": 3}
    failed = {"step": 61, "line": "train.py:8", "variables": [inputs, labels]} | batch
    return [
        Event("train.batch", START, {"shape": [32, 16]}),
        Event("numerics.setup", START, {"last": {"units": 5}}),
        Event("data.at_failure", START + 9, failed),
    ]


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("shape-mismatch", ["in step 61 (train.py:8): x is 32×15 float32; y is 32 int64, from 0 to 7 (row 3)",
                            "the batches before were 32×16: x of this one is shaped otherwise"]),
        ("label-out-of-range", ["in step 61 (train.py:8): y is 32 int64, from 0 to 7 (row 3)",
                                "the last layer has 5 outputs, so labels go from 0 to 4"]),
        ("disk-full", []),
    ],
)  # fmt: skip
def test_errors_about_data_are_told_with_the_batch_and_no_others(cause: str, words: list[str]) -> None:
    assert cause in CAUSES
    (found,) = with_batch(story(1, events=at_failure()), [Finding(cause, 0.9, ())])
    told = [one.text for one in found.evidence]
    assert told == words


def test_batches_that_always_had_several_shapes_are_not_called_odd() -> None:
    varied = [Event("train.batch", START, {"shape": [32, size]}) for size in (16, 20)]
    (found,) = with_batch(story(1, events=[*varied, *at_failure()]), [Finding("shape-mismatch", 0.9, ())])
    assert len(found.evidence) == 1
