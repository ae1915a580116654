from __future__ import annotations

import pytest

from holdfast.probes import Missing, Scope
from holdfast.probes.vmstat import Vmstat

from .machine import FakeMachine, reasons, samples


def test_the_kernel_counters_are_read(machine: FakeMachine) -> None:
    machine.write("/proc/vmstat", "nr_free_pages 5\npswpin 1\npswpout 2\npgmajfault 3\noom_kill 4\n")
    assert samples(Vmstat(machine.scope()).read(1.0)) == {
        "host.oom_kill_count": 4,
        "host.swap_in_count": 1,
        "host.swap_out_count": 2,
        "host.major_fault_count": 3,
    }


def test_a_kernel_that_does_not_count_kills_leaves_them_missing(machine: FakeMachine) -> None:
    machine.write("/proc/vmstat", "pswpin 1\npswpout 2\npgmajfault 3\n")
    assert reasons(Vmstat(machine.scope()).read(1.0)) == {"host.oom_kill_count": "this kernel does not count oom_kill"}


def test_without_the_file_there_is_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="vmstat"):
        Vmstat(machine.scope())


def test_this_machine_counts() -> None:
    assert None not in samples(Vmstat(Scope(1, 1, ())).read(1.0)).values()
