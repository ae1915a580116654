from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from holdfast.probes import Scope
from holdfast.probes.disk import Disk, Room, _filled_up

from .machine import GIB, MIB, SCRIPT, WATCHER, FakeMachine, events, reasons, samples

ROOT = "8:1 / / ext4 rw"
DATA = "8:2 / /data xfs rw"


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 16 MiB."""
    point = tmp_path / "small"
    point.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", point], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("needs the right to mount")
    yield point
    subprocess.run(["umount", "-l", point], check=True)


def test_the_file_systems_of_the_directories_are_watched_once_each(machine: FakeMachine) -> None:
    machine.mounts(ROOT, DATA, "8:1 /home /home ext4 rw", "8:3 / /unused ext4 rw")
    for folder in ("/data/run", "/tmp", "/home/me"):
        machine.folder(folder)
    found = samples(Disk(machine.scope("/data/run", "/home/me", "/tmp")).read(1.0))
    watched = {name for name in found if name.endswith("free_bytes")}
    assert watched == {"disk[/].free_bytes", "disk[/data].free_bytes"}
    assert 0 < (found["disk[/data].free_bytes"] or 0) <= (found["disk[/data].total_bytes"] or 0)


def test_mounts_below_the_working_directory_are_watched(machine: FakeMachine) -> None:
    machine.mounts(ROOT, "0:50 / /work/my\\040run/scratch tmpfs rw")
    machine.folder("/work/my run/scratch")
    assert "disk[/work/my run/scratch].free_bytes" in samples(Disk(machine.scope("/work/my run")).read(1.0))


def test_a_file_held_open_for_writing_brings_its_file_system_in(machine: FakeMachine) -> None:
    machine.mounts(ROOT, DATA)
    machine.folder("/data")
    machine.process(SCRIPT, WATCHER)
    descriptors = machine.folder(f"/proc/{SCRIPT}/fd")
    (descriptors / "3").symlink_to("/data/checkpoint.tmp")  # a plain link shows all permission bits
    assert "disk[/data].free_bytes" in samples(Disk(machine.scope("/")).read(1.0))


def test_how_a_real_file_was_opened_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    probe = Disk(Scope(os.getpid(), os.getppid(), ()))
    paths: set[str] = set()
    with (tmp_path / "in").open(), (tmp_path / "out").open("w"):
        probe._written_by(os.getpid(), 1000, paths)
    assert str(tmp_path / "out") in paths
    assert str(tmp_path / "in") not in paths


def test_a_file_system_that_went_away_is_missing_and_not_full(machine: FakeMachine) -> None:
    machine.mounts(ROOT, DATA)
    folder = machine.folder("/data")
    probe = Disk(machine.scope("/data"))
    probe.read(1.0)
    folder.rmdir()
    found = probe.closing(3.0)
    assert reasons(found)["disk[/data].free_bytes"].endswith("No such file or directory")


def test_partitions_do_not_count_their_disk_twice(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.folder("/sys/block/sda/device")
    machine.folder("/sys/block/dm-0")
    one = SimpleNamespace(read_bytes=5, write_bytes=7)
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk: {"sda": one, "sda1": one, "dm-0": one})
    found = samples(Disk(machine.scope("/")).read(1.0))
    assert (found["disk.read_bytes"], found["disk.written_bytes"]) == (5, 7)


@pytest.mark.parametrize(
    ("before", "now", "filled_up"),
    [
        (Room(8 * MIB, 16 * MIB, 100), Room(100 * 1024, 16 * MIB, 100), True),
        (Room(100 * 1024, 16 * MIB, 100), Room(100 * 1024, 16 * MIB, 100), False),
        (Room(500 * GIB, 1000 * GIB, 100), Room(15 * GIB, 1000 * GIB, 100), False),
        (Room(200 * MIB, 1000 * GIB, 100), Room(0, 1000 * GIB, 100), True),
        (Room(500 * GIB, 1000 * GIB, 100), Room(400 * GIB, 1000 * GIB, 0), True),
        (Room(5 * GIB, 10 * GIB, None), Room(4 * GIB, 10 * GIB, None), False),
        (None, Room(0, 16 * MIB, 100), True),
    ],
)
def test_full_is_what_filled_up_during_the_run(before: Room | None, now: Room, filled_up: bool) -> None:
    assert _filled_up(before, now) is filled_up


@pytest.mark.root
@pytest.mark.alone
def test_a_file_system_nobody_watched_is_found_full_after_the_end(tmpfs: Path) -> None:
    script = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    probe = Disk(Scope(script.pid, os.getpid(), (Path("/"),)))
    watched = samples(probe.read(1.0))
    with pytest.raises(OSError, match="No space left"), (tmpfs / "checkpoint").open("wb", buffering=0) as file:
        while True:
            if file.write(bytes(MIB)) < MIB:
                raise OSError(28, "No space left on device")
    script.communicate(b"\n")
    assert f"disk[{tmpfs}].free_bytes" not in watched
    (full,) = events(probe.closing(3.0), "disk.full")
    assert full.data["mountpoint"] == str(tmpfs)
    assert full.data["free_bytes"] < MIB


@pytest.mark.root
@pytest.mark.alone
def test_one_that_was_full_before_the_run_is_not_blamed(tmpfs: Path) -> None:
    (tmpfs / "old").write_bytes(bytes(16 * MIB - 100 * 1024))
    probe = Disk(Scope(os.getpid(), os.getppid(), (Path("/"),)))
    probe.read(1.0)
    assert events(probe.closing(3.0), "disk.full") == []


@pytest.mark.root
def test_a_script_with_mounts_of_its_own_is_seen_through_its_own_root(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=16m tmpfs {tmp_path} && cd {tmp_path} && echo ready && exec cat"
    script = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", mount],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert script.stdout is not None
    if script.stdout.readline() != b"ready\n":
        script.communicate()
        pytest.skip("needs the right to mount")
    found = samples(Disk(Scope(script.pid, os.getpid(), (tmp_path,))).read(1.0))
    script.communicate(b"")
    assert found[f"disk[{tmp_path}].total_bytes"] == 16 * MIB
