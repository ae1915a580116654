from __future__ import annotations

import os

from holdfast.probes.machine import Machine, boot_id

from .machine import FakeMachine, events, reasons, samples


def test_the_machine_introduces_itself_once(machine: FakeMachine) -> None:
    machine.write("/proc/sys/kernel/random/boot_id", "b3d0fc50-7137\n")
    probe = Machine(machine.scope())
    (about,) = events(probe.read(1.0), "machine")
    assert about.data["boot_id"] == "b3d0fc50-7137"
    assert {"boot_id", "kernel", "hostname", "cores", "system"} <= set(about.data)
    assert events(probe.read(2.0), "machine") == []


def test_it_beats_with_the_uptime_and_the_load_per_core(machine: FakeMachine) -> None:
    machine.write("/proc/uptime", "1234.56 99.00\n")
    machine.write("/proc/loadavg", f"{os.cpu_count()}.00 0.00 0.00 1/100 999\n")
    found = samples(Machine(machine.scope()).read(1.0))
    assert found == {"host.uptime_s": 1234.56, "host.load_ratio": 1.0}


def test_without_proc_it_says_so(machine: FakeMachine) -> None:
    assert boot_id(machine.root) is None
    assert set(reasons(Machine(machine.scope()).read(1.0))) == {"host.uptime_s", "host.load_ratio"}


def test_this_boot_has_a_name() -> None:
    assert boot_id() == boot_id()
    assert boot_id()
