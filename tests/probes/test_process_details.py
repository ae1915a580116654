from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.probes import Scope
from holdfast.probes.process_details import ProcessDetails

from .machine import SCRIPT, WATCHER, FakeMachine, reasons, samples

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


def test_the_fair_share_is_asked_rarely(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    machine.write(f"/proc/{SCRIPT}/smaps_rollup", "55-7f ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss: 7 kB\n")
    probe = ProcessDetails(machine.scope())
    assert samples(probe.read(1.0))["job.pss_bytes"] == 7 * 1024
    assert "job.pss_bytes" not in samples(probe.read(3.0))
    assert samples(probe.read(12.0))["job.pss_bytes"] == 7 * 1024


def test_many_processes_are_not_asked_for_their_fair_share(machine: FakeMachine) -> None:
    for pid in range(SCRIPT, SCRIPT + 9):
        machine.process(pid, WATCHER)
    assert reasons(ProcessDetails(machine.scope()).read(1.0))["job.pss_bytes"] == "not asked of 9 processes"


def test_what_may_not_be_read_says_why(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    found = reasons(ProcessDetails(machine.scope()).read(1.0))
    assert found["job.read_bytes"].endswith("No such file or directory")
    assert set(found) == set(ProcessDetails.signals)


def test_a_real_child_has_files_and_a_fair_share(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "20"])
    found = samples(ProcessDetails(Scope(child.pid, os.getpid(), (tmp_path,))).read(1.0))
    child.kill()
    child.wait()
    assert (found["job.open_files_count"] or 0) >= 3
    assert (found["job.pss_bytes"] or 0) > 0
