"""Ranks save at the same step, and go on from the newest one that all of them have, or from none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.inside import checkpoint_store
from holdfast.inside.script_state.rank_checkpoints import RankCheckpoints, folder, newest_of_any, steps_of_all


def save(top: Path, rank: int, step: int, size: int = 2) -> dict[str, Any]:
    own = top / folder(rank, size)
    manifest = {"step": step, "framework": "torch", "kind": "loop"}
    return checkpoint_store.write(str(own), manifest, lambda place: (Path(place) / "a").write_text(f"{step}") and None)


class Recorder:
    def __init__(self) -> None:
        self.steps = 0


class Rank(RankCheckpoints):
    """What it agrees on alone: no framework, no loop."""

    def __init__(self, top: Path, rank: int) -> None:
        self.recorder = Recorder()  # type: ignore[assignment]
        self._all, self._first = str(top), rank == 0
        self._step = self._began = None
        self.next_at = 0.0

    def at(self, step: int, moment: float, monkeypatch: pytest.MonkeyPatch) -> bool:
        """As a loop asks: only once it is time to look."""
        self.recorder.steps = step
        monkeypatch.setattr("holdfast.inside.script_state.rank_checkpoints.now", lambda: moment)
        return moment >= self.next_at and self._is_now()


@pytest.mark.parametrize("step_s", [0.001, 0.02, 0.7])
def test_all_ranks_save_at_the_same_step(tmp_path: Path, step_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [Rank(tmp_path, number) for number in range(3)]
    saved: list[set[int]] = [set(), set(), set()]
    for step in range(3000):
        for number, rank in enumerate(ranks):
            if rank.at(step, 1000.0 + step * step_s + 0.1 * step_s * number, monkeypatch):
                saved[number].add(step)

    assert saved[0]
    assert saved[0] == saved[1] == saved[2]


def test_the_newest_step_that_all_have_is_gone_on_from(tmp_path: Path) -> None:
    for rank, steps in ((0, (10, 20)), (1, (10, 20)), (0, (30,))):
        for step in steps:
            save(tmp_path, rank, step)

    assert sorted(steps_of_all(str(tmp_path))) == [20]  # two are kept: rank 0 has 20 and 30
    newest = newest_of_any(str(tmp_path))
    assert newest is not None
    assert newest["step"] == 20


def test_what_one_rank_has_alone_is_cleared_away(tmp_path: Path) -> None:
    for rank, step in ((0, 10), (1, 10), (0, 30)):
        save(tmp_path, rank, step)
    rank = Rank(tmp_path, 0)
    found = rank._of_all(str(tmp_path / folder(0, 2)))

    assert found is not None
    assert found["step"] == 10
    assert [one["step"] for one in checkpoint_store.all_of(str(tmp_path / folder(0, 2)))] == [10]


@pytest.mark.parametrize("damage", ["missing", "torn", "another number of ranks"])
def test_without_a_step_that_all_have_nobody_goes_on(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 0, 10)
    other = save(tmp_path, 1, 10, size=3 if damage == "another number of ranks" else 2)
    if damage == "missing":
        checkpoint_store.remove(other["path"])
    elif damage == "torn":
        (Path(other["path"]) / "a").write_text("")

    assert steps_of_all(str(tmp_path)) == {}
    assert Rank(tmp_path, 0)._of_all(str(tmp_path / folder(0, 2))) is None


def test_a_run_of_one_process_is_read_as_before(tmp_path: Path) -> None:
    checkpoint_store.write(str(tmp_path), {"step": 5}, lambda place: (Path(place) / "a").write_text("x") and None)
    newest = newest_of_any(str(tmp_path))

    assert newest is not None
    assert newest["step"] == 5
