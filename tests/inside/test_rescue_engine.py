from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.inside import rescue_engine
from holdfast.inside.piece_sizes import Pieces
from holdfast.inside.rescue_engine import CannotSplit, Driver, Engine


@pytest.fixture(autouse=True)
def nothing_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescue_engine, "give_back", lambda: [])  # a collection takes longer than the test


class OutOfMemoryError(RuntimeError):
    """As PyTorch's is called."""


class Told:
    steps = 0

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def event(self, kind: str, **data: Any) -> None:
        self.events.append((kind, data))

    def cut(self, k: int, where: str) -> None:
        self.event("rescue.k", k=k, where=where)

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


class Summing(Driver):
    """The batch is a list of numbers, its result their sum; memory holds so many rows at once, or fails by a script."""

    def __init__(self, room: int, fails: list[bool] | None = None, keeps: bool = False) -> None:
        self.room, self.keeps = room, keeps
        self.fails = fails or []
        self.calls = self.wholes = 0
        self.sizes: list[int] = []
        self.total = 0
        self.refuses = ""

    def _take(self, rows: int) -> None:
        self.calls += 1
        assert self.calls < 10_000, "it does not end"
        if rows > self.room or (self.fails and self.fails.pop(0)):
            raise OutOfMemoryError("CUDA out of memory")

    def size(self, batch: Any) -> tuple[int, Any]:
        return len(batch), "tail"

    def whole(self, batch: Any) -> Any:
        self.wholes += 1
        self._take(len(batch))
        return sum(batch)

    def begin(self, batch: Any, rows: int, k: int) -> None:
        if self.refuses:
            raise CannotSplit(self.refuses)
        self.total, self.sizes = 0, []

    def piece(self, batch: Any, begin: int, end: int) -> None:
        self._take(end - begin)
        self.total += sum(batch[begin:end])
        self.sizes.append(end - begin)

    def piece_failed(self, position: int, error: BaseException | None) -> int:
        return position if self.keeps else 0

    def end(self, batch: Any) -> Any:
        return self.total


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 200),
    least=st.integers(1, 4),
    room=st.integers(0, 250),
    k=st.integers(1, 9),
    keeps=st.booleans(),
    fails=st.lists(st.booleans(), max_size=30),
)
def test_every_batch_ends_in_its_own_result_or_in_the_error_itself(  # noqa: PLR0917 - hypothesis passes names
    rows: int, least: int, room: int, k: int, keeps: bool, fails: list[bool]
) -> None:
    driver = Summing(room, list(fails), keeps)
    engine = Engine(driver, Pieces(k, least=least), Told())
    batch = list(range(1, rows + 1))
    for _ in range(3):
        try:
            assert engine.run(batch) == sum(batch)
        except OutOfMemoryError:
            assert engine.pieces.refused
    if max(least, -(-rows // max(1, rows // least))) <= room and not any(fails):
        assert not engine.pieces.refused
    if driver.sizes and not keeps:
        assert min(driver.sizes) >= min(least, rows) and len(set(driver.sizes)) <= 2


def test_a_batch_that_fits_is_run_once_and_nothing_is_told() -> None:
    driver, told = Summing(8), Told()
    assert Engine(driver, Pieces(), told).run([1, 2, 3]) == 6
    assert (driver.calls, told.events) == (1, [])


def test_once_a_batch_did_not_fit_the_next_one_is_not_tried_whole() -> None:
    driver, told = Summing(4), Told()
    engine = Engine(driver, Pieces(), told)
    assert engine.run(list(range(16))) == engine.run(list(range(16))) == 120
    assert driver.wholes == 1 and driver.sizes == [4, 4, 4, 4]
    assert [data["k"] for kind, data in told.events if kind == "rescue.k"] == [2, 4]


def test_an_odd_number_of_rows_with_batch_normalisation_ends() -> None:
    engine = Engine(Summing(1), Pieces(least=2), told := Told())
    with pytest.raises(OutOfMemoryError):
        engine.run([1, 2, 3])
    assert told.kinds()[-2:] == ["rescue.refused", "rescue.exhausted"]


def test_what_may_not_be_cut_raises_its_own_error_and_says_why_once() -> None:
    driver, told = Summing(4), Told()
    driver.refuses = "its loss is over the whole batch"
    engine = Engine(driver, Pieces(), told)
    for _ in range(2):
        with pytest.raises(OutOfMemoryError) as raised:
            engine.run(list(range(8)))
    assert "CUDA out of memory" in str(raised.value)
    assert [data["reason"] for kind, data in told.events if kind == "rescue.refused"] == [driver.refuses]


def test_an_error_that_is_no_lack_of_memory_is_the_users() -> None:
    class Wrong(Summing):
        def whole(self, batch: Any) -> Any:
            raise ValueError("shapes do not match")

    with pytest.raises(ValueError, match="shapes do not match"):
        Engine(Wrong(8), Pieces(), told := Told()).run([1])
    assert told.events == []


def test_what_fails_only_in_pieces_is_run_whole_again_and_not_cut_any_more() -> None:
    class Odd(Summing):
        def piece(self, batch: Any, begin: int, end: int) -> None:
            raise KeyError("only in pieces")

    driver, told = Odd(100), Told()
    assert Engine(driver, Pieces(4), told).run([1, 2, 3, 4]) == 10
    assert "only in pieces" in told.events[0][1]["reason"]


def test_a_piece_that_fails_goes_on_from_its_row_where_the_framework_keeps_what_was_done() -> None:
    driver = Summing(100, fails=[False, False, True], keeps=True)
    assert Engine(driver, Pieces(4), Told()).run(list(range(16))) == 120
    assert driver.sizes[:2] == [4, 4] and sum(driver.sizes) == 16


class Reaching(Summing):
    """A piece that fails has left something complete up to its own end."""

    def __init__(self, room: int) -> None:
        super().__init__(room, keeps=True)
        self.ends: list[int] = []
        self.cut: list[tuple[int, int]] = []

    def reach(self, position: int, rows: int) -> int:
        return min([end for end in self.ends if end > position] + [rows])

    def piece(self, batch: Any, begin: int, end: int) -> None:
        if end - begin > self.room:
            self.ends.append(end)
        super().piece(batch, begin, end)
        self.cut.append((begin, end))


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("rows", range(8, 40))
def test_no_piece_reaches_past_what_a_failed_one_left_complete(rows: int, least: int) -> None:
    driver = Reaching(3)
    assert Engine(driver, Pieces(2, least=least), Told()).run(list(range(rows))) == sum(range(rows))
    assert driver.ends and all(end in {stop for _, stop in driver.cut} for end in driver.ends)
    assert min(driver.sizes) >= least


def test_where_a_batch_failed_whole_and_its_pieces_cannot_be_forgotten_its_own_error_is_raised() -> None:
    class Stuck(Summing):
        def piece_failed(self, position: int, error: BaseException | None) -> int:
            raise CannotSplit("gradients are there already")

        def piece(self, batch: Any, begin: int, end: int) -> None:
            raise CannotSplit("half of a gradient")

    with pytest.raises(OutOfMemoryError):
        Engine(Stuck(4), Pieces(), Told()).run(list(range(8)))
    with pytest.raises(RuntimeError, match="cannot be trained in pieces: half of a gradient"):
        Engine(Stuck(100), Pieces(2), Told()).run(list(range(8)))
