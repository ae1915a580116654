"""Where memory may run out, read from control groups of both versions, made of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.supervisor.guard.gauges import Group, Machine, Use
from tests.probes.machine import FakeMachine

MIB = 1 << 20


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def _v2(machine: FakeMachine, limit: str = "419430400", swap_max: str = "0", swapped: int = 0) -> str:
    folder = machine.folder("/cg/job")
    machine.write("/cg/job/memory.max", f"{limit}\n")
    machine.write("/cg/job/memory.current", f"{300 * MIB}\n")
    machine.write(
        "/cg/job/memory.stat", f"anon {200 * MIB}\nfile 1\ninactive_file {60 * MIB}\nactive_file {20 * MIB}\n"
    )
    machine.write("/cg/job/memory.swap.max", f"{swap_max}\n")
    machine.write("/cg/job/memory.swap.current", f"{swapped}\n")
    machine.write("/cg/job/memory.events", "low 0\nhigh 3\nmax 1\noom 2\noom_kill 2\n")
    return str(folder)


def test_version_2_counts_no_cache_and_no_swap_that_is_not_allowed(machine: FakeMachine) -> None:
    gauge = Group(_v2(machine), 2)
    assert gauge.read()
    assert (gauge.taken, gauge.whole, gauge.swap_left) == (220 * MIB, 400 * MIB, 0)
    assert gauge.left == pytest.approx(172 * MIB) and gauge.left_to_the_end == 180 * MIB
    assert gauge.left < gauge.left_alone < gauge.left_to_the_end  # the kernel's line around the job comes before


def test_version_2_with_swap_has_that_much_more_before_the_kernel_kills(machine: FakeMachine) -> None:
    gauge = Group(_v2(machine, swap_max=str(100 * MIB), swapped=30 * MIB), 2)
    assert gauge.read()
    assert (gauge.swapped, gauge.swap_left) == (30 * MIB, 70 * MIB)


def test_a_group_without_a_limit_is_no_gauge(machine: FakeMachine) -> None:
    assert not Group(_v2(machine, limit="max"), 2).read()


def test_kills_by_the_kernel_are_counted(machine: FakeMachine) -> None:
    assert Use(_v2(machine), 2).kernel_kills() == 2


def test_version_1_counts_its_whole_subtree(machine: FakeMachine) -> None:
    folder = machine.folder("/cg/v1")
    machine.write("/cg/v1/memory.limit_in_bytes", f"{400 * MIB}\n")
    machine.write("/cg/v1/memory.memsw.limit_in_bytes", f"{500 * MIB}\n")
    machine.write("/cg/v1/memory.usage_in_bytes", f"{300 * MIB}\n")
    stat = f"cache 1\ninactive_file 7\nswap 1\ntotal_inactive_file {50 * MIB}\ntotal_active_file {10 * MIB}\ntotal_swap {20 * MIB}\n"
    machine.write("/cg/v1/memory.stat", stat)
    machine.write("/cg/v1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    gauge = Group(str(folder), 1)
    assert gauge.read()
    assert (gauge.taken, gauge.swapped, gauge.swap_left) == (240 * MIB, 20 * MIB, 80 * MIB)
    assert gauge.use.kernel_kills() == 1


def test_the_machine_keeps_a_reserve(machine: FakeMachine) -> None:
    machine.meminfo(MemTotal=8 << 20, MemAvailable=1 << 20, SwapTotal=2 << 20, SwapFree=1 << 20)
    gauge = Machine(machine.root)
    assert gauge.read()
    assert gauge.taken == 7 << 30 and gauge.swapped == gauge.swap_left == 1 << 30
    assert gauge.left == pytest.approx((1 << 30) - 0.025 * (8 << 30))
    assert gauge.left < gauge.left_to_the_end < 1 << 30


def test_the_cache_of_zfs_is_room(machine: FakeMachine) -> None:
    machine.meminfo(MemTotal=8 << 20, MemAvailable=1 << 20, SwapTotal=0, SwapFree=0)
    machine.write(
        "/proc/spl/kstat/zfs/arcstats",
        f"13 1 0x01 96 26112 1 2\nname                            type data\nhits                            4    5\n"
        f"c                               4    {4 << 30}\nc_min                           4    {1 << 30}\n"
        f"size                            4    {3 << 30}\n",
    )
    gauge = Machine(machine.root)
    assert gauge.read()
    assert gauge.taken == 5 << 30


@pytest.mark.parametrize(
    ("stat", "pages"), [("workingset_refault_anon 7\npgmajfault 900\n", 7), ("pgmajfault 900\n", 900)]
)
def test_pages_of_a_mapped_file_did_not_come_back_from_swap(machine: FakeMachine, stat: str, pages: int) -> None:
    folder = _v2(machine)
    machine.write("/cg/job/memory.stat", f"anon 1\n{stat}")
    use = Use(folder, 2)
    assert use.read() and use.pages_back == pages
