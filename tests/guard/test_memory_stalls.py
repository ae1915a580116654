"""Waiting for memory counts where memory is short, comes as it lasts, and goes again."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from holdfast.supervisor.guard.gauges import Machine
from holdfast.supervisor.guard.memory_stalls import Stalls
from tests.probes.machine import FakeMachine


def _stall(tmp_path: Path, available_kib: int, share: float, seconds: float = 2.0) -> float:
    machine = FakeMachine(tmp_path)
    machine.meminfo(MemTotal=8 << 20, MemAvailable=available_kib, SwapTotal=0, SwapFree=0)
    path = machine.write("/proc/pressure/memory", "")
    gauge = Machine(tmp_path)
    assert gauge.read()
    path.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    stalls = Stalls(select.poll(), str(path))
    found = 0.0
    for turn in range(int(seconds / 0.11)):
        now = 100 + turn * 0.11
        full = int((now - 100) * share * 1e6)
        path.write_text(
            f"some avg10=0.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"
        )
        found = stalls.look(gauge, now)
    return found


def test_a_stall_with_memory_short_counts_its_seconds(tmp_path: Path) -> None:
    assert _stall(tmp_path, available_kib=200 << 10, share=0.6) == pytest.approx(2.0, abs=0.5)


def test_pressure_on_a_machine_with_room_is_somebody_elses(tmp_path: Path) -> None:
    assert _stall(tmp_path, available_kib=4 << 20, share=0.9) == 0


def test_a_little_waiting_is_no_stall(tmp_path: Path) -> None:
    assert _stall(tmp_path, available_kib=200 << 10, share=0.1) == 0
