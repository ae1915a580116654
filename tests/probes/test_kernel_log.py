from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast.probes import Missing, Scope
from holdfast.probes.kernel_log import LINES_A_READ, RELEVANT, KernelLog

from .machine import FakeMachine, events

TOLD = [
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task=python,pid=7,uid=0",
    "Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:8kB",
    "Out of memory: Killed process 7 (python)",
    "cgroup: fork rejected by pids controller in /job",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off the bus.",
    "python[7]: segfault at 0 ip 00007f sp 00007f error 4 in libtensorflow.so",
    "traps: python[7] trap invalid opcode ip:7f sp:7f error:0",
    "traps: python[7] general protection fault ip:7f sp:7f error:0",
    "INFO: task python:7 blocked for more than 120 seconds.",
    "blk_update_request: I/O error, dev sda, sector 8",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2",
    "XFS (sda1): Corruption detected. Unmount and run xfs_repair",
    "nfs: server filer not responding, still trying",
    "CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)",
    "mce: [Hardware Error]: Machine check events logged",
]
NOT_TOLD = [
    "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
    "EXT4-fs (vda): mounted filesystem 0000 r/w without journal. Quota mode: none.",
    "random: crng reseeded due to virtual machine fork",
    "drop_caches: 3",
]


@pytest.mark.parametrize("line", TOLD)
def test_a_line_that_can_explain_a_death_is_told(line: str) -> None:
    assert RELEVANT.search(line)


@pytest.mark.parametrize("line", NOT_TOLD)
def test_everyday_lines_are_not(line: str) -> None:
    assert not RELEVANT.search(line)


def test_only_lines_written_since_the_start_are_told(machine: FakeMachine) -> None:
    log = machine.write("/dev/kmsg", "4,1,1000000,-;Out of memory: Killed process 1 (old)\n")
    probe = KernelLog(machine.scope())
    assert probe.read(1.0) == []
    with log.open("a") as file:
        file.write("4,8,2500000,-;Out of memory: Killed process 2 (new)\n SUBSYSTEM=memory\n")
    (line,) = events(probe.read(2.0), "kernel.line")
    assert line.data == {"text": "Out of memory: Killed process 2 (new)", "seq": 8, "uptime_s": 2.5}
    probe.close()


def test_a_flood_is_told_a_part_at_a_time(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("/dev/kmsg", "")
    probe = KernelLog(machine.scope())
    monkeypatch.setattr("os.read", lambda fd, size: b"4,8,2500000,-;I/O error\n")
    assert len(probe.read(1.0)) == LINES_A_READ
    monkeypatch.undo()
    probe.close()


def test_records_overwritten_before_they_were_read_do_not_stop_it(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("/dev/kmsg", "")
    probe = KernelLog(machine.scope())
    answers: list[bytes | OSError] = [
        BrokenPipeError(32, "overwritten"),
        b"4,8,1,-;I/O error\n",
        BlockingIOError(11, ""),
    ]

    def answer(fd: int, size: int) -> bytes:
        one = answers.pop(0)
        if isinstance(one, OSError):
            raise one
        return one

    monkeypatch.setattr("os.read", answer)
    assert len(probe.read(1.0)) == 1
    monkeypatch.undo()
    probe.close()


def test_without_rights_there_is_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="the kernel log cannot be read"):
        KernelLog(machine.scope())


@pytest.mark.root
@pytest.mark.alone
def test_the_real_log_is_read_without_waiting() -> None:
    if os.geteuid() != 0 or not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("needs root and /dev/kmsg")
    probe = KernelLog(Scope(1, 1, ()))
    probe.read(1.0)
    mark = f"holdfast test {time.time()}: I/O error"
    Path("/dev/kmsg").write_text(mark + "\n")  # without the end of line it waits for more
    assert any(line.data["text"] == mark for line in events(probe.read(2.0), "kernel.line"))
    probe.close()
