from __future__ import annotations

import pytest

from holdfast.probes import Missing
from holdfast.probes.cpu_heat import CpuHeat

from .machine import FakeMachine, reasons, samples


def test_the_hottest_sensor_counts_with_its_own_limit(machine: FakeMachine) -> None:
    machine.write("/sys/class/hwmon/hwmon0/name", "nvme\n")
    machine.write("/sys/class/hwmon/hwmon0/temp1_input", "99000\n")
    machine.write("/sys/class/hwmon/hwmon1/name", "coretemp\n")
    machine.write("/sys/class/hwmon/hwmon1/temp1_input", "71000\n")
    machine.write("/sys/class/hwmon/hwmon1/temp2_input", "83000\n")
    machine.write("/sys/class/hwmon/hwmon1/temp2_crit", "100000\n")
    assert samples(CpuHeat(machine.scope()).read(1.0)) == {
        "cpu.temperature_celsius": 83.0,
        "cpu.temperature_limit_celsius": 100.0,
    }


def test_a_thermal_zone_will_do_where_there_is_no_chip(machine: FakeMachine) -> None:
    zone = "/sys/class/thermal/thermal_zone0"
    machine.write(f"{zone}/type", "cpu-thermal\n")
    machine.write(f"{zone}/temp", "55000\n")
    machine.write(f"{zone}/trip_point_0_type", "passive\n")
    machine.write(f"{zone}/trip_point_0_temp", "80000\n")
    machine.write(f"{zone}/trip_point_1_type", "critical\n")
    machine.write(f"{zone}/trip_point_1_temp", "95000\n")
    assert samples(CpuHeat(machine.scope()).read(1.0)) == {
        "cpu.temperature_celsius": 55.0,
        "cpu.temperature_limit_celsius": 95.0,
    }


def test_throttling_is_counted_over_all_cores(machine: FakeMachine) -> None:
    for core in range(2):
        machine.write(f"/sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count", "3\n")
    assert samples(CpuHeat(machine.scope()).read(1.0)) == {"cpu.throttle_count": 6}


def test_a_sensor_that_stops_answering_is_missing_and_not_cold(machine: FakeMachine) -> None:
    machine.write("/sys/class/hwmon/hwmon1/name", "k10temp\n")
    sensor = machine.write("/sys/class/hwmon/hwmon1/temp1_input", "71000\n")
    probe = CpuHeat(machine.scope())
    sensor.unlink()
    assert reasons(probe.read(1.0))["cpu.temperature_celsius"] == "the sensors do not answer"


def test_a_machine_that_shows_no_heat_has_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="neither a temperature nor a throttle count"):
        CpuHeat(machine.scope())
