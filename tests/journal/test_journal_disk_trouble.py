from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from journal_making import FakeClock, row

from holdfast.journal import Follower, Journal, JournalWriter
from holdfast.vocabulary import Event

ENOSPC_PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from holdfast.journal import Journal, JournalWriter
from holdfast.vocabulary import Sample

mount = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], check=True)
now = [1000.0]
writer = JournalWriter(mount / "journal", "watcher", segment_bytes=int(sys.argv[2]), clock=lambda: now[0])
ballast = mount / "ballast"
ballast.write_bytes(bytes(100_000))

def rows(count):
    for _ in range(count):
        now[0] += 0.5
        writer.samples(now[0], [Sample(f"s{i}_count", now[0], now[0]) for i in range(100)])
    writer.sync()

rows(400)
lost = writer.lost_records
assert lost > 100, lost
full = Journal(mount / "journal")
assert full.damage == [], full.damage
kept = {sample.at for sample in full.samples()}
assert len(kept) == 400 - lost, (len(kept), lost)
ballast.unlink()
rows(50)
journal = Journal(mount / "journal")
assert journal.damage == [], journal.damage
times = [sample.at for sample in journal.samples(["s7_count"])]
assert times == sorted(times) and times[-1] == now[0]
assert len(times) == 450 - writer.lost_records
(gap,) = journal.events("journal.gap")
assert gap.data["records"] == writer.lost_records and gap.data["reason"] == "No space left on device", gap
assert max(kept) < gap.data["from"] <= gap.data["until"] < times[-1]
print("ok")
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounts a tmpfs")
@pytest.mark.parametrize("segment_bytes", [1 << 20, 20_000])
def test_a_full_disk_costs_counted_records_and_writing_goes_on_once_there_is_room(
    tmp_path: Path, segment_bytes: int
) -> None:
    command = ["unshare", "-m", sys.executable, "-c", ENOSPC_PROGRAM, str(tmp_path), str(segment_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "mount" in done.stderr and "denied" in done.stderr:
        pytest.skip("mounting is not allowed here")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


class FailingDisk:
    """Stands in for os.write and friends; `part` of a record still reaches the file, as on a disk that fills up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error = 0
        self.part = 0
        self._write, self._truncate, self._sync = os.write, os.ftruncate, os.fdatasync
        self.truncate_fails = False
        self.sync_fails = False
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "ftruncate", self.truncate)
        monkeypatch.setattr("holdfast.journal.writer._flush", self.sync)

    def write(self, fd: int, data: bytes) -> int:
        if not self.error:
            return self._write(fd, data)
        if self.part:
            self.part, part = 0, self.part
            return self._write(fd, bytes(data)[:part])
        raise OSError(self.error, os.strerror(self.error))

    def truncate(self, fd: int, size: int) -> None:
        if self.truncate_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._truncate(fd, size)

    def sync(self, fd: int) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    return FailingDisk(monkeypatch)


@pytest.mark.parametrize("truncate_fails", [False, True])
@pytest.mark.parametrize("part", [0, 1, 9, 30])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT, errno.ESTALE])
def test_a_half_written_record_is_cut_off_again(
    directory: Path, disk: FailingDisk, error: int, part: int, truncate_fails: bool
) -> None:
    clock = FakeClock()
    writer = JournalWriter(directory, "watcher", clock=clock)
    for step in range(30):
        clock.now += 0.4
        disk.error = error if 10 <= step < 20 else 0
        disk.part = part if step == 10 else 0
        disk.truncate_fails = truncate_fails
        writer.samples(clock.now, row(clock.now, [float(step), None], "away"))
    writer.close()
    journal = Journal(directory)
    steps = [sample.value for sample in journal.samples(["signal.0_ratio"])]
    assert steps[:10] == list(range(10)) and steps[-1] == 29
    assert len(steps) == 30 - writer.lost_records
    (gap,) = journal.events("journal.gap")
    assert gap.data["records"] == writer.lost_records >= 10
    assert gap.data["reason"] == os.strerror(error)
    assert len(journal.damage) == (1 if truncate_fails and part else 0)


def test_retries_are_a_second_apart(directory: Path, disk: FailingDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    writer = JournalWriter(directory, "watcher", clock=clock)
    disk.error = errno.ENOSPC
    writer.event(Event("first", clock.now))
    tries = []
    monkeypatch.setattr(writer, "_open", lambda now: tries.append(now) or os.stat("/nonexistent"))
    for _ in range(100):
        clock.now += 0.1
        writer.event(Event("tick", clock.now))
    assert 8 <= len(tries) <= 10
    assert writer.lost_records == 101


def test_a_failed_sync_is_told_as_a_gap_and_a_new_segment_begins(directory: Path, disk: FailingDisk) -> None:
    clock = FakeClock()
    writer = JournalWriter(directory, "watcher", clock=clock)
    writer.event(Event("one", clock.now))
    disk.sync_fails = True
    writer.sync()
    disk.sync_fails = False
    clock.now += 2.0
    writer.event(Event("two", clock.now))
    assert [event.kind for event in Journal(directory).events()] == ["one", "journal.gap", "two"]
    assert len(list(directory.iterdir())) == 2
    assert writer.lost_records == 1  # in doubt counts as lost


def test_a_gap_that_never_ended_is_told_at_the_close_if_the_disk_is_back(directory: Path, disk: FailingDisk) -> None:
    clock = FakeClock()
    writer = JournalWriter(directory, "watcher", clock=clock)
    writer.event(Event("one", clock.now))
    disk.error = errno.ENOSPC
    writer.event(Event("two", clock.now))
    disk.error = 0
    writer.close()
    writer.close()
    writer.event(Event("late", clock.now))
    assert [event.kind for event in Journal(directory).events()] == ["one", "journal.gap"]
    assert writer.lost_records == 2


def test_a_disk_that_stays_full_is_no_trouble_at_the_close(directory: Path, disk: FailingDisk) -> None:
    writer = JournalWriter(directory, "watcher")
    disk.error = errno.ENOSPC
    writer.event(Event("one", 1.0))
    writer.sync()
    writer.tend(1.0)
    writer.close()
    assert writer.lost_records == 1
    assert list(directory.iterdir()) == []


def test_a_directory_that_vanishes_is_a_gap_and_its_return_ends_it(directory: Path) -> None:
    clock = FakeClock()
    writer = JournalWriter(directory, "watcher", clock=clock)
    follower = Follower(directory)
    writer.event(Event("before", clock.now))
    assert len(follower.poll()) == 1
    shutil.rmtree(directory.parent)
    for _ in range(5):
        clock.now += 1.0
        writer.event(Event("into the void", clock.now))
        assert follower.poll() == []
    assert not directory.parent.exists()
    directory.mkdir(parents=True)
    clock.now += 1.0
    writer.event(Event("after", clock.now))
    gap, after = Journal(directory).events()
    assert (gap.kind, gap.data["records"], after.kind) == ("journal.gap", 6, "after")
    assert follower.poll() == [gap, after]


def test_upkeep_survives_a_vanished_directory(directory: Path) -> None:
    clock = FakeClock()
    writer = JournalWriter(directory, "watcher", segment_s=10.0, keep_raw_s=10.0, clock=clock)
    for _ in range(50):
        clock.now += 1.0
        writer.samples(clock.now, row(clock.now, [1.0]))
    shutil.rmtree(directory)
    for _ in range(10):
        clock.now += 100.0
        writer.tend(clock.now)
    assert not directory.exists()


def test_a_place_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    writer = JournalWriter(tmp_path / "file" / "journal", "watcher")
    writer.samples(1.0, row(1.0, [1.0]))
    writer.event(Event("one", 1.0))
    writer.tend(1.0)
    writer.sync()
    writer.close()
    assert writer.lost_records == 2


READ_ONLY_PROGRAM = """
import os, sys
from pathlib import Path
from holdfast.journal import Journal, JournalWriter
from holdfast.vocabulary import Event

if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
now = [1000.0]
writer = JournalWriter(Path(sys.argv[1]), "watcher", clock=lambda: now[0])
writer.event(Event("lost", now[0]))
assert writer.lost_records == 1
assert list(Path(sys.argv[1]).iterdir()) == []
print("waiting", flush=True)
sys.stdin.readline()
now[0] += 5
writer.event(Event("kept", now[0]))
print([event.kind for event in Journal(Path(sys.argv[1])).events()], flush=True)
"""


def test_a_read_only_directory_is_a_gap_until_it_is_not(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    for parent in [tmp_path, *list(tmp_path.parents)[:3]]:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/tmp"):
            parent.chmod(0o755)
    directory.chmod(0o555)
    program = [sys.executable, "-c", READ_ONLY_PROGRAM, str(directory)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "waiting\n"
        directory.chmod(0o777)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "['journal.gap', 'kept']\n"
