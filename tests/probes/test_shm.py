from __future__ import annotations

import pytest

from holdfast.probes import Missing
from holdfast.probes.shm import SharedMemory

from .machine import FakeMachine, reasons, samples


def test_room_in_shared_memory_is_told(machine: FakeMachine) -> None:
    machine.folder("/dev/shm")
    found = samples(SharedMemory(machine.scope()).read(1.0))
    assert 0 < (found["shm.free_bytes"] or 0) <= (found["shm.total_bytes"] or 0)


def test_it_may_vanish(machine: FakeMachine) -> None:
    folder = machine.folder("/dev/shm")
    probe = SharedMemory(machine.scope())
    folder.rmdir()
    assert set(reasons(probe.read(1.0))) == {"shm.free_bytes", "shm.total_bytes"}


def test_without_shared_memory_there_is_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="/dev/shm"):
        SharedMemory(machine.scope())
