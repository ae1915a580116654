from __future__ import annotations

import pytest

from holdfast.probes import Missing
from holdfast.probes.pressure import Pressure

from .machine import FakeMachine, reasons, samples

LINES = "some avg10={} avg60=0.00 avg300=0.00 total=1\nfull avg10={} avg60=0.00 avg300=0.00 total=1\n"


def test_the_ten_second_averages_are_read(machine: FakeMachine) -> None:
    machine.write("/proc/pressure/memory", LINES.format("12.50", "3.25"))
    machine.write("/proc/pressure/io", LINES.format("7.00", "0.00"))
    machine.write("/proc/pressure/cpu", LINES.format("99.00", "0.00"))
    assert samples(Pressure(machine.scope()).read(1.0)) == {
        "pressure.memory_some_percent": 12.5,
        "pressure.memory_full_percent": 3.25,
        "pressure.io_some_percent": 7.0,
        "pressure.io_full_percent": 0.0,
        "pressure.cpu_some_percent": 99.0,
    }


def test_one_file_missing_does_not_take_the_others_along(machine: FakeMachine) -> None:
    machine.write("/proc/pressure/memory", LINES.format("1.00", "1.00"))
    machine.write("/proc/pressure/cpu", "some avg10=5.00 avg60=0.00 avg300=0.00 total=1\n")
    found = Pressure(machine.scope()).read(1.0)
    assert samples(found)["pressure.cpu_some_percent"] == 5.0
    assert set(reasons(found)) == {"pressure.io_some_percent", "pressure.io_full_percent"}


def test_where_it_is_switched_off_there_is_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="pressure stall information is off"):
        Pressure(machine.scope())
