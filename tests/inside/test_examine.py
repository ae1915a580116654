"""What grows between two counts is named with its holder; nothing is kept alive by counting."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from types import ModuleType
from typing import Any

import pytest

from holdfast.inside import examine, held_containers
from holdfast.inside.examine import Examiner, compare, first_count
from holdfast.inside.telemetry import Recorder

KEPT: list[Any] = [0] * 4


@pytest.fixture(autouse=True)
def _time_for_all_objects_of_a_test_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more of them here than in a training process: each collected test is some."""
    monkeypatch.setattr(examine, "COUNT_S", 10.0)
    monkeypatch.setattr(held_containers, "SECONDS", 10.0)


class Keeper:
    def __init__(self) -> None:
        self.batches: dict[int, bytes] = {-i: b"" for i in range(1, 5)}


class PhotoDataset:
    def __init__(self) -> None:
        self.decoded: dict[int, bytes] = {-i: b"" for i in range(1, 5)}


class Counted:
    pass


class SilentWriter:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def text(self, kind: str, at: float, **data: Any) -> None:
        self.told.append((kind, data))


def holders(growing: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {grower["holder"]: grower for grower in growing}


def test_a_variable_of_the_loop_an_attribute_and_a_modules_variable_are_named() -> None:
    losses: list[Any] = [b""] * 4
    keeper, photos = Keeper(), PhotoDataset()
    before = first_count()
    for i in range(20):
        losses.append((i, b"x" * 10_000))
        keeper.batches[i] = b"y" * 20_000
        photos.decoded[i] = b"z" * 5_000
        KEPT.append(b"k" * 5_000)
    growing, _ = compare(before, 20)
    KEPT.clear()
    here = "test_a_variable_of_the_loop_an_attribute_and_a_modules_variable_are_named() of test_examine.py"
    found = holders(growing)
    assert set(found) >= {f"losses in {here}", "Keeper.batches", "PhotoDataset.decoded", "test_examine.KEPT"}
    assert found["Keeper.batches"]["count"] == 20
    assert 400_000 <= found["Keeper.batches"]["bytes"] < 450_000
    assert found["PhotoDataset.decoded"]["of_the_data"] and not found["Keeper.batches"]["of_the_data"]


def test_what_does_not_grow_or_is_tiny_is_not_named() -> None:
    full, numbers = [b"x" * 10_000] * 50, [0.5] * 10
    before = first_count()
    full[:] = [b"y" * 10_000] * 50
    numbers.extend([0.5] * 20)
    assert compare(before, 20)[0] == []


def test_nothing_is_kept_alive() -> None:
    one = Counted()
    watched = weakref.ref(one)
    held = [one]
    before = first_count()
    compare(before, 20)
    held.clear()
    del one
    assert watched() is None


def test_code_of_the_scripts_own_is_not_run() -> None:
    class Touchy(dict[str, Any]):
        def __len__(self) -> int:
            raise AssertionError("asked")

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    touchy = Touchy()
    before = first_count()
    assert compare(before, 20)[0] == []
    assert dict.__len__(touchy) == 0


def test_the_second_count_comes_after_enough_steps() -> None:
    writer = SilentWriter()
    recorder = Recorder(writer)  # type: ignore[arg-type]
    examiner = Examiner(recorder)
    assert examiner.begin({"id": "examine:1"}) == "begun"
    assert examiner.begin({"id": "examine:2"}) == "under way already"
    began = examiner._began_at
    recorder.steps = 19
    examiner.look(began + 1.0)
    assert writer.told == []
    recorder.steps = 20
    examiner.look(began + 1.0)
    ((kind, about),) = writer.told
    assert kind == "examined" and (about["id"], about["steps"]) == ("examine:1", 20)


def test_while_nothing_explains_the_growth_it_is_counted_again_ever_later_and_not_for_ever() -> None:
    writer = SilentWriter()
    recorder = Recorder(writer)  # type: ignore[arg-type]
    examiner = Examiner(recorder)
    examiner.begin({"id": "examine:1", "per_step_bytes": 1e9})
    for steps in range(1, 2000):
        recorder.steps = steps
        examiner.look(examiner._began_at + 0.5)
    assert [about["steps"] for _, about in writer.told] == [20, 40, 80, 160, 320]
    assert examiner.begin({"id": "examine:2"}) == "begun"


def test_a_buffer_with_an_end_is_told_as_one() -> None:
    replay: deque[bytes] = deque([b""] * 4, maxlen=500)
    everything: list[bytes] = [b""] * 4
    before = first_count()
    for _ in range(20):
        replay.append(b"r" * 10_000)
        everything.append(b"e" * 10_000)
    found = {name.split(" ")[0]: grower for name, grower in holders(compare(before, 20)[0]).items()}
    assert found["replay"]["bounded"] and not found["everything"]["bounded"]


class Log:
    lines: list[Any] = []  # noqa: RUF012 - as people write it


def test_what_a_class_holds_for_all_its_instances_is_found() -> None:
    log = Log()
    before = first_count()
    for _ in range(20):
        log.lines.append(b"x" * 10_000)
    growing, _ = compare(before, 20)
    log.lines.clear()
    assert "Log.lines" in holders(growing)


class Layer:
    """Attributes as PyTorch's modules have them."""

    def __init__(self, weight: Any) -> None:
        self._parameters, self._modules = {"weight": weight}, {}


def test_a_few_large_models_that_are_kept_are_named_though_there_are_few() -> None:
    numpy = pytest.importorskip("numpy")
    trials: list[Any] = [(0.5, Layer(numpy.zeros(1 << 18))) for _ in range(3)]
    begun = first_count()
    trials += [(0.4, Layer(numpy.zeros(1 << 18))) for _ in range(2)]
    growing, later = compare(begun, 64, None, per_step=64 << 10)
    assert growing == []
    trials += [(0.3, Layer(numpy.zeros(1 << 18))) for _ in range(2)]
    growing, _ = compare(begun, 128, later, per_step=64 << 10)
    (grower,) = growing
    assert grower["holder"].startswith("trials in ") and grower["what"] == "models (Layer)"
    assert grower["count"] == 4 and grower["bytes"] > 4 << 21


def test_libraries_that_lie_elsewhere_do_not_use_up_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install --target`, a folder on PYTHONPATH: thousands of their names are not the script's."""
    for name in ("numpy", "big_library"):
        module = ModuleType(name)
        module.__file__ = f"/apps/python/{name}/__init__.py"
        vars(module).update({f"name{i}": [i] for i in range(30_000)})
        monkeypatch.setitem(sys.modules, name, module)
    keeper = Keeper()
    before = first_count()
    keeper.batches.update({i: b"y" * 20_000 for i in range(20)})
    growing, _ = compare(before, 20)
    assert [grower["holder"] for grower in growing] == ["Keeper.batches"]
