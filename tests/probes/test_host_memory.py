from __future__ import annotations

from pathlib import Path

from holdfast.probes import Scope
from holdfast.probes.host_memory import HostMemory

from .machine import FakeMachine, reasons, samples


def test_memory_and_swap_come_in_bytes(machine: FakeMachine) -> None:
    machine.meminfo(MemTotal=1000, MemFree=100, MemAvailable=600, SwapTotal=50, SwapFree=20)
    assert samples(HostMemory(machine.scope()).read(1.0)) == {
        "host.memory_total_bytes": 1000 * 1024,
        "host.memory_available_bytes": 600 * 1024,
        "host.swap_total_bytes": 50 * 1024,
        "host.swap_free_bytes": 20 * 1024,
    }


def test_an_old_kernel_without_an_available_figure_gets_an_estimate(machine: FakeMachine) -> None:
    machine.meminfo(MemTotal=1000, MemFree=100, Buffers=10, Cached=300, Shmem=50, SwapTotal=0, SwapFree=0)
    assert samples(HostMemory(machine.scope()).read(1.0))["host.memory_available_bytes"] == 360 * 1024


def test_what_the_kernel_does_not_tell_is_missing_and_not_zero(machine: FakeMachine) -> None:
    machine.meminfo(MemTotal=1000)
    found = HostMemory(machine.scope()).read(1.0)
    assert samples(found)["host.swap_free_bytes"] is None
    assert reasons(found)["host.memory_available_bytes"] == "not in /proc/meminfo"


def test_without_proc_every_signal_says_why(machine: FakeMachine) -> None:
    assert set(reasons(HostMemory(machine.scope()).read(1.0))) == set(HostMemory.signals)


def test_a_system_without_proc_is_asked_through_psutil(tmp_path: Path) -> None:
    probe = HostMemory(Scope(1, 1, ()))
    probe._path = str(tmp_path / "none")
    assert (samples(probe.read(1.0))["host.memory_total_bytes"] or 0) > 0


def test_this_machine_has_memory() -> None:
    found = samples(HostMemory(Scope(1, 1, ())).read(1.0))
    assert 0 < (found["host.memory_available_bytes"] or 0) <= (found["host.memory_total_bytes"] or 0)
