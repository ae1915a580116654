from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from holdfast.probes import Scope
from holdfast.probes.processes import EVENTS_A_RUN, Processes

from .machine import MIB, SCRIPT, WATCHER, FakeMachine, events, samples


def test_what_the_processes_hold_is_summed(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER, rss_bytes=300 * MIB, threads=8, cpu_s=2)
    machine.process(110, SCRIPT, state="D", rss_bytes=100 * MIB, cpu_s=1)
    machine.process(111, SCRIPT, state="T")
    machine.process(112, SCRIPT, state="Z")
    assert samples(Processes(machine.scope()).read(1.0)) == {
        "job.rss_bytes": 400 * MIB,
        "job.largest_rss_bytes": 300 * MIB,
        "job.cpu_s": 3.0,
        "job.processes_count": 4,
        "job.threads_count": 11,
        "job.blocked_count": 1,
        "job.stopped_count": 1,
        "job.zombie_count": 1,
    }


def test_comings_and_goings_are_told(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    probe = Processes(machine.scope())
    probe.read(1.0)
    machine.process(110, SCRIPT, name="loader", rss_bytes=MIB)
    (came,) = events(probe.read(2.0), "process.appeared")
    assert came.data == {"pid": 110, "name": "loader", "parent": SCRIPT, "command": "loader train.py"}
    machine.no_process(110)
    (gone,) = events(probe.read(3.0), "process.gone")
    assert gone.data == {"pid": 110, "name": "loader", "rss_bytes": MIB}


def test_a_script_that_forks_for_ever_does_not_fill_the_journal(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    probe = Processes(machine.scope())
    told = []
    for turn in range(30):
        for pid in range(1000, 1020):
            machine.process(pid, SCRIPT, started=turn * 100 + pid)
        told += probe.read(float(turn))
    assert len(events(told, "process.appeared") + events(told, "process.gone")) <= EVENTS_A_RUN
    assert len(events(told, "process.unlisted")) == 1


def test_processor_time_of_a_child_waited_for_is_counted_once(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER, cpu_s=10)
    machine.process(110, SCRIPT, cpu_s=5)
    probe = Processes(machine.scope())
    assert samples(probe.read(1.0))["job.cpu_s"] == 15
    machine.no_process(110)
    machine.process(SCRIPT, WATCHER, cpu_s=11, children_cpu_s=5.5)
    assert samples(probe.read(2.0))["job.cpu_s"] == 16.5


def test_processor_time_of_a_child_nobody_waited_for_is_kept(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER, cpu_s=10)
    machine.process(110, SCRIPT, cpu_s=5)
    machine.process(111, WATCHER, cpu_s=2)
    probe = Processes(machine.scope())
    assert samples(probe.read(1.0))["job.cpu_s"] == 17
    machine.no_process(110)
    machine.no_process(111)
    machine.process(SCRIPT, WATCHER, cpu_s=11)
    assert samples(probe.read(2.0))["job.cpu_s"] == 18


def test_a_whole_branch_may_end_at_once(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER, cpu_s=1)
    machine.process(110, SCRIPT, cpu_s=2)
    machine.process(111, 110, cpu_s=4)
    probe = Processes(machine.scope())
    probe.read(1.0)
    machine.no_process(110)
    machine.no_process(111)
    machine.process(SCRIPT, WATCHER, cpu_s=1, children_cpu_s=6)
    assert samples(probe.read(2.0))["job.cpu_s"] == 7


def test_a_job_that_is_over_holds_nothing(machine: FakeMachine) -> None:
    machine.process(1, 0)
    machine.process(SCRIPT, WATCHER, rss_bytes=MIB, cpu_s=3)
    probe = Processes(machine.scope())
    probe.read(1.0)
    machine.no_process(SCRIPT)
    found = samples(probe.read(2.0))
    assert (found["job.rss_bytes"], found["job.processes_count"], found["job.cpu_s"]) == (0, 0, 3)


def test_a_real_child_and_its_child_are_seen() -> None:
    code = "import subprocess,sys; print(subprocess.Popen(['sleep','20']).pid, flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    found = Processes(Scope(child.pid, os.getpid(), (Path.cwd(),))).read(1.0)
    appeared = {event.data["pid"] for event in events(found, "process.appeared")}
    os.kill(grandchild, 9)
    child.communicate("")
    assert {child.pid, grandchild} <= appeared
    assert (samples(found)["job.rss_bytes"] or 0) > 5 * MIB


def test_three_hundred_processes_take_little_time(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    for pid in range(1000, 1300):
        machine.process(pid, SCRIPT, rss_bytes=MIB)
    probe = Processes(machine.scope())
    probe.read(0.0)
    began = time.thread_time()
    for turn in range(5):
        probe.read(float(turn + 1))
    assert (time.thread_time() - began) / 5 < 0.03
