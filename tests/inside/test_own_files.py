"""Checkpoints that a script writes by itself are known again by the next attempt, under the name they got in the end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast.inside.script_state.own_files import OwnFiles


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnFiles:
    for owner, name in ((os, "replace"), (os, "rename"), (shutil, "copyfile")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back at the end
    return OwnFiles(str(tmp_path / "checkpoints"))


def test_a_file_that_was_written_beside_its_place_is_known_by_its_last_name(own: OwnFiles, tmp_path: Path) -> None:
    for name in ("part", "other"):
        (tmp_path / name).write_text("weights")
    own.saved(str(tmp_path / "part"))
    (tmp_path / "part").replace(tmp_path / "last.pt")
    shutil.copy(tmp_path / "last.pt", tmp_path / "best.pt")
    (tmp_path / "other").rename(tmp_path / "data.pt")
    later = OwnFiles(str(tmp_path / "checkpoints"))
    assert [name for name in ("last.pt", "best.pt", "data.pt") if later.is_from_before(tmp_path / name)] == [
        "last.pt",
        "best.pt",
    ]


def test_so_are_those_of_a_folder(own: OwnFiles, tmp_path: Path) -> None:
    (tmp_path / "step-5.tmp").mkdir()
    (tmp_path / "step-5.tmp" / "model.pt").write_text("weights")
    own.saved(str(tmp_path / "step-5.tmp" / "model.pt"))
    (tmp_path / "step-5.tmp").rename(tmp_path / "step-5")
    assert OwnFiles(str(tmp_path / "checkpoints")).holds(str(tmp_path / "step-5"))


def test_a_kill_between_a_rename_and_its_record_loses_nothing(own: OwnFiles, tmp_path: Path) -> None:
    """It is recorded first: here the rename itself does not come about."""
    (tmp_path / "part").write_text("weights")
    own.saved(tmp_path / "part")
    with pytest.raises(FileNotFoundError):
        (tmp_path / "part").replace(tmp_path / "not-there" / "last.pt")
    later = OwnFiles(str(tmp_path / "checkpoints"))
    assert later.is_from_before(tmp_path / "not-there" / "last.pt")
