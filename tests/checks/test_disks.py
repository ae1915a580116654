from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.checks import disk_speed, disks
from holdfast.checks.contract import Here
from holdfast.probes.disk import Room
from tests.probes.machine import GIB, MIB, FakeMachine


@pytest.mark.parametrize(
    ("free", "total", "status"),
    [
        (100 * GIB, 500 * GIB, "ok"),
        (2 * GIB, 500 * GIB, "warn"),
        (900 * MIB, 500 * GIB, "bad"),
        (400 * MIB, 512 * MIB, "warn"),  # a small one, and not a full one
        (10 * MIB, 512 * MIB, "bad"),
    ],
)
def test_space(free: int, total: int, status: str) -> None:
    assert disks.space("/data", Room(free, total, None)).status == status


@pytest.mark.parametrize(("free", "total", "status"), [(5, 1000, ["bad"]), (500, 1000, []), (None, None, [])])
def test_inodes(free: int | None, total: int | None, status: list[str]) -> None:
    room = Room(GIB, 2 * GIB, free, total)
    assert [line.status for line in disks.inodes("/data", room)] == status


def test_what_lies_on_one_file_system_is_one_line(here: Here) -> None:
    found = [line for line in disks.look(here) if line.id == "disk-space"]
    assert len(found) == 1
    assert "/work (runs, the working directory, temporary files)" in found[0].text


def refuse_writing(monkeypatch: pytest.MonkeyPatch, machine: FakeMachine, *folders: str) -> None:
    """Root may write everywhere but on a read-only file system."""
    refused = {str(machine.root) + folder for folder in folders}
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in refused and allowed(path, mode))


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, machine: FakeMachine, here: Here) -> None:
    refuse_writing(monkeypatch, machine, "/tmp")
    assert [(line.status, line.fix) for line in disks.look(here) if line.id == "disk-writable"] == [
        ("warn", "export TMPDIR=DIR with one that can")
    ]
    refuse_writing(monkeypatch, machine, "/tmp", "/work")
    assert [line.status for line in disks.look(here) if line.id == "disk-writable"] == ["bad", "bad", "bad"]


def test_a_folder_that_is_gone(monkeypatch: pytest.MonkeyPatch, machine: FakeMachine, here: Here) -> None:
    def stale(path: str) -> Room:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(disks, "room_at", stale)
    found = list(disks.look(here))
    assert {(line.id, line.status) for line in found} == {("disk-space", "bad")}
    assert "Stale file handle" in found[0].text


def test_the_speed_of_a_real_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    here = Here(runs=tmp_path / "not/made/yet", cwd=tmp_path, python="python")
    began = time.monotonic()
    (line,) = disk_speed.look(here)
    assert "MiB/s" in line.text and str(tmp_path) in line.text
    assert time.monotonic() - began < 20  # 0.7 s where nobody else writes
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("write", "read", "status"), [(500, 900, "ok"), (5, 900, "warn"), (500, 8, "warn")], ids=["fast", "writes", "reads"]
)
def test_a_slow_disk(monkeypatch: pytest.MonkeyPatch, here: Here, write: int, read: int, status: str) -> None:
    monkeypatch.setattr(disk_speed, "_write", lambda fd: (4 * MIB, write * MIB))
    monkeypatch.setattr(disk_speed, "_read", lambda fd, written: read * MIB)
    assert [line.status for line in disk_speed.look(here)] == [status]


def test_the_speed_of_what_cannot_be_written_is_no_line(here: Here) -> None:
    assert list(disk_speed.look(replace(here, root=Path("/proc/self")))) == []
