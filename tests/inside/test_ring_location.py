"""A ring lies in memory, so that no disk can hold a step up, and is gone after the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.inside import ring_location
from holdfast.inside.ring import Reader


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "shm"
    place.mkdir()
    monkeypatch.setattr(ring_location, "MEMORY", str(place))
    return place


def test_a_ring_lies_in_memory_and_is_found_in_the_run(tmp_path: Path, memory: Path) -> None:
    writer = ring_location.new_ring(str(tmp_path / "1.ring"))
    writer.step(1.0, 1, 0, 2, 1, 0.0, 0.1, (3, 4))
    assert len(Reader(str(tmp_path / "1.ring")).read()) == 1
    assert (tmp_path / "1.ring").resolve().parent == memory


def test_a_name_is_taken_once(tmp_path: Path, memory: Path) -> None:
    ring_location.new_ring(str(tmp_path / "1.ring"))
    with pytest.raises(FileExistsError):
        ring_location.new_ring(str(tmp_path / "1.ring"))
    assert len(list(memory.iterdir())) == 1


def test_without_room_in_memory_it_lies_in_the_run(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_location, "SPARE_BYTES", 1 << 62)
    ring_location.new_ring(str(tmp_path / "1.ring"))
    assert not (tmp_path / "1.ring").is_symlink()
    assert not list(memory.iterdir())


def test_after_the_run_nothing_of_it_is_left_in_memory(tmp_path: Path, memory: Path) -> None:
    ring_location.new_ring(str(tmp_path / "1.ring"))
    stale, young = memory / "holdfast-4194999-aa.ring", memory / "holdfast-4194998-bb.ring"
    for path in (stale, young):
        path.write_bytes(b"")
    os.utime(stale, (0, 0))
    ring_location.clear(str(tmp_path))
    assert list(memory.iterdir()) == [young]
