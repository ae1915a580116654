from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.probes import Scope
from holdfast.probes.process_details import ProcessDetails

from .machine import MIB, SCRIPT, WATCHER, FakeMachine, reasons, samples

LIMITS = (
    "Limit                     Soft Limit  Hard Limit  Units\nMax open files            {}        4096        files\n"
)


def details(
    machine: FakeMachine, pid: int, *, files: int = 3, limit: int = 1024, read: int = 0, written: int = 0
) -> None:
    folder = machine.folder(f"/proc/{pid}/fd")
    for number in range(files):
        (folder / str(number)).touch()
    machine.write(f"/proc/{pid}/limits", LIMITS.format(limit))
    machine.write(f"/proc/{pid}/io", f"rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}\n")


@pytest.fixture(autouse=True)
def plain_folders_have_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /proc/<pid>/fd had none before Linux 6.2; a test's folder has one that means nothing."""
    real = os.stat
    sizeless = os.stat_result((0o40700, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    monkeypatch.setattr(
        "os.stat",
        lambda path, **how: (
            sizeless if str(path).endswith("/fd") and str(path).startswith(str(tmp_path)) else real(path, **how)
        ),
    )


def test_the_process_nearest_to_its_own_limit_speaks_for_open_files(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    machine.process(110, SCRIPT)
    details(machine, SCRIPT, files=20, limit=1024)
    details(machine, 110, files=8, limit=10)
    found = samples(ProcessDetails(machine.scope()).read(1.0))
    assert (found["job.open_files_count"], found["job.open_files_limit_count"]) == (8, 10)


def test_bytes_read_and_written_never_fall(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    machine.process(110, WATCHER)
    details(machine, SCRIPT, files=0, read=100, written=10)
    details(machine, 110, files=0, read=50, written=5)
    probe = ProcessDetails(machine.scope())
    found = samples(probe.read(1.0))
    assert (found["job.read_bytes"], found["job.written_bytes"]) == (150, 15)
    (machine.root / "proc/110/fd").rmdir()
    machine.no_process(110)
    details(machine, SCRIPT, files=0, read=110, written=10)
    found = samples(probe.read(10.0))
    assert (found["job.read_bytes"], found["job.written_bytes"]) == (160, 15)


ROLLUP = "55-7f ---p 0 00:00 0 [rollup]\nRss: 90 kB\nPss: 70 kB\nPss_Anon: {} kB\nPss_File: 60 kB\nPss_Shmem: 1 kB\n"


def test_what_the_job_holds_is_weighed_rarely_and_follows_the_sizes_in_between(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER, rss_bytes=20 * MIB)
    machine.write(f"/proc/{SCRIPT}/smaps_rollup", ROLLUP.format(9))
    probe = ProcessDetails(machine.scope())
    assert samples(probe.read(1.0))["job.held_bytes"] == 10 * 1024
    machine.process(SCRIPT, WATCHER, rss_bytes=21 * MIB)
    machine.write(f"/proc/{SCRIPT}/smaps_rollup", ROLLUP.format(99))
    assert samples(probe.read(3.0))["job.held_bytes"] == 10 * 1024 + MIB
    assert samples(probe.read(12.0))["job.held_bytes"] == 100 * 1024


def test_without_shares_what_each_process_holds_counts_and_mapped_files_do_not(machine: FakeMachine) -> None:
    for pid in (SCRIPT, 110):
        machine.process(pid, WATCHER)
        machine.write(f"/proc/{pid}/status", "Name: x\nVmRSS: 90 kB\nRssAnon: 20 kB\nRssFile: 60 kB\nRssShmem: 10 kB\n")
    assert samples(ProcessDetails(machine.scope()).read(1.0))["job.held_bytes"] == 2 * 30 * 1024


def test_what_may_not_be_read_says_why(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    found = reasons(ProcessDetails(machine.scope()).read(1.0))
    assert found["job.read_bytes"].endswith("No such file or directory")
    assert set(found) == set(ProcessDetails.signals)


def test_a_real_child_has_files_and_holds_memory(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "20"])
    found = samples(ProcessDetails(Scope(child.pid, os.getpid(), (tmp_path,))).read(1.0))
    child.kill()
    child.wait()
    assert (found["job.open_files_count"] or 0) >= 3
    assert (found["job.held_bytes"] or 0) > 0
