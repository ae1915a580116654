from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from holdfast.inside import checkpoint_store


def save(directory: Path, step: int, **more: object) -> dict[str, object]:
    def fill(place: str) -> None:
        (Path(place) / "state").write_bytes(b"%d" % step * 1000)
        (Path(place) / "rest").write_bytes(b"r")

    return checkpoint_store.write(str(directory), {"step": step, **more}, fill)


def test_the_newest_is_found_with_its_manifest_and_path(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    found = checkpoint_store.newest(str(tmp_path))
    assert found is not None
    assert (found["step"], found["number"]) == (30, 3)
    assert Path(str(found["path"])).name == "00000003"


def test_the_last_two_are_kept_and_those_that_say_so(tmp_path: Path) -> None:
    save(tmp_path, 1, keep=True)
    for step in (2, 3, 4, 5):
        save(tmp_path, step)
    assert [manifest["step"] for manifest in checkpoint_store.all_of(str(tmp_path))] == [1, 4, 5]


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "manifest cut", "manifest changed", "manifest gone"])
def test_a_damaged_one_is_passed_over(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 10)
    path = Path(str(save(tmp_path, 20)["path"]))
    state, manifest = path / "state", path / checkpoint_store.MANIFEST
    if damage == "cut":
        state.write_bytes(state.read_bytes()[:-1])
    elif damage == "flipped":
        state.write_bytes(state.read_bytes()[:-1] + b"\0")
    elif damage == "gone":
        state.unlink()
    elif damage == "manifest cut":
        manifest.write_text(manifest.read_text()[:-10])
    elif damage == "manifest changed":
        manifest.write_text(manifest.read_text().replace('"step": 20', '"step": 21'))
    else:
        manifest.unlink()
    found = checkpoint_store.newest(str(tmp_path))
    assert found is not None
    assert found["step"] == 10


def test_what_a_torn_save_left_is_never_read_and_cleared_by_the_next(tmp_path: Path) -> None:
    save(tmp_path, 10)
    torn = tmp_path / ".saving-00000002-1"
    shutil.copytree(tmp_path / "00000001", torn)
    (tmp_path / ".removing-00000000-1").mkdir()
    assert checkpoint_store.newest(str(tmp_path))["step"] == 10  # type: ignore[index]
    save(tmp_path, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000001", "00000002"]


def test_a_save_that_fails_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, 10)

    def fail(place: str) -> None:
        (Path(place) / "half").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoint_store.write(str(tmp_path), {"step": 20}, fail)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


def test_a_disk_that_would_get_too_full_is_not_written_to(tmp_path: Path) -> None:
    save(tmp_path, 10)
    with pytest.raises(checkpoint_store.NoSpace):
        checkpoint_store.write(str(tmp_path), {"step": 20}, lambda place: None, expect_bytes=1 << 60)
    assert checkpoint_store.newest(str(tmp_path))["step"] == 10  # type: ignore[index]


def test_a_directory_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert checkpoint_store.newest(str(tmp_path / "nowhere")) is None


def test_a_manifest_is_plain_json(tmp_path: Path) -> None:
    path = Path(str(save(tmp_path, 10, epoch=3)["path"]))
    held = json.loads((path / checkpoint_store.MANIFEST).read_text())["manifest"]
    assert held["epoch"] == 3
    assert held["files"]["rest"]["bytes"] == 1
