"""How much memory is left, by one definition for the guard, the probes and the part inside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.inside.headroom import V2, arcstats_path, host_memory, left, limit_bytes, working_bytes
from holdfast.probes.host_memory import HostMemory
from holdfast.supervisor.guard.gauges import Group, Machine
from tests.probes.machine import FakeMachine, samples

MIB, GIB = 1 << 20, 1 << 30
FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.memsw.limit_in_bytes", "total_"),
    2: ("memory.max", "memory.current", "memory.swap.max", ""),
}


def machine(place: Path, available: int, swap: int = 0) -> str:
    path = place / "meminfo"
    path.write_text(f"MemTotal: 99999999 kB\nMemAvailable: {available * 1024} kB\nSwapFree: {swap * 1024} kB\n")
    return str(place)


def group(
    place: Path, limit: object, used: int, *, cache: int = 0, swap: object = 0, version: int = 2, high: object = "max"
) -> dict[str, Any]:
    place.mkdir(exist_ok=True)
    limits, usage, swap_limit, total = FILES[version]
    for name, value in ((limits, limit), (usage, used * MIB), (swap_limit, swap)):
        (place / name).write_text(f"{value}\n")
    if version == 2:
        (place / "memory.high").write_text(f"{high}\n")
        (place / "memory.swap.current").write_text("0\n")
    (place / "memory.stat").write_text(f"anon 5\n{total}inactive_file {cache * MIB}\n{total}active_file 0\n")
    return {"folder": str(place), "version": version}


def zfs(fake: FakeMachine, size: int, least: int) -> None:
    fake.write(
        "/proc/spl/kstat/zfs/arcstats",
        f"13 1 0x01 96 26112 1 2\nname                            type data\nhits                            4    5\n"
        f"c                               4    {size}\nc_min                           4    {least}\n"
        f"size                            4    {size}\n",
    )


def test_the_tightest_of_the_groups_and_the_machine_binds(tmp_path: Path) -> None:
    inner, outer = group(tmp_path / "a", 900 * MIB, 600), group(tmp_path / "b", 2000 * MIB, 1900)
    assert left([inner, outer], machine(tmp_path, 50_000)) == (100 * MIB, "container")
    assert left([inner, outer], machine(tmp_path, 40)) == (40 * MIB, "machine")


def test_page_cache_is_given_up_when_memory_is_needed(tmp_path: Path) -> None:
    assert left([group(tmp_path / "a", 900 * MIB, 880, cache=500)], machine(tmp_path, 9000)) == (520 * MIB, "container")


def test_a_group_without_a_limit_does_not_bind(tmp_path: Path) -> None:
    for none in ("max", 9223372036854771712):
        assert left([group(tmp_path / "a", none, 880)], machine(tmp_path, 9000)) == (9000 * MIB, "machine")


def test_swap_counts_where_the_group_may_use_it(tmp_path: Path) -> None:
    with_swap = machine(tmp_path, 9000, swap=300)
    assert left([group(tmp_path / "a", 900 * MIB, 800, swap="max")], with_swap) == (400 * MIB, "container")
    assert left([group(tmp_path / "a", 900 * MIB, 800, swap=0)], with_swap) == (100 * MIB, "container")
    v1 = group(tmp_path / "a", 900 * MIB, 800, swap=1000 * MIB, version=1)
    assert left([v1], with_swap) == (200 * MIB, "container"), "version 1 counts memory and swap together"


def test_where_nothing_says_nothing_is_known(tmp_path: Path) -> None:
    assert left([], str(tmp_path / "absent")) is None


def test_a_group_that_is_throttled_before_its_limit_has_room_up_to_there(tmp_path: Path) -> None:
    throttled = group(tmp_path / "a", 900 * MIB, 600, high=700 * MIB)
    assert left([throttled], machine(tmp_path, 9000)) == (100 * MIB, "container")
    gauge = Group(throttled["folder"], 2)
    assert gauge.read() and gauge.whole == 700 * MIB


def test_the_cache_of_zfs_is_available_to_guard_probe_and_training_process_alike(tmp_path: Path) -> None:
    fake = FakeMachine(tmp_path)
    fake.meminfo(MemTotal=8 << 20, MemAvailable=1 << 20, SwapTotal=0, SwapFree=0)
    zfs(fake, 3 * GIB, 1 * GIB)
    gauge = Machine(fake.root)
    assert gauge.read()
    seen = {
        "guard": gauge.whole - gauge.taken,
        "probe": samples(HostMemory(fake.scope()).read(1.0))["host.memory_available_bytes"],
        "inside": left([], str(tmp_path / "proc")).bytes,  # type: ignore[union-attr]
    }
    assert seen == dict.fromkeys(seen, 3 * GIB)


def test_a_kernel_without_mem_available_is_read_alike(tmp_path: Path) -> None:
    fake = FakeMachine(tmp_path)
    fake.meminfo(MemTotal=1000, MemFree=100, Buffers=10, SwapCached=999, Cached=300, Shmem=50, SwapTotal=0, SwapFree=0)
    gauge = Machine(fake.root)
    assert gauge.read()
    room = left([], str(tmp_path / "proc"))
    assert gauge.whole - gauge.taken == 360 * 1024 and room is not None and room.bytes == 360 * 1024


def test_zfs_of_the_host_is_no_part_of_numbers_that_are_shown_to_a_container(tmp_path: Path) -> None:
    """lxcfs mounts its own meminfo over the kernel's: told by the device it lies on."""
    elsewhere = Path("/dev/shm") / f"holdfast-meminfo-{os.getpid()}"
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    zfs(FakeMachine(tmp_path), 3 * GIB, GIB)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\n")
    assert arcstats_path(str(tmp_path / "proc")) is not None
    try:
        elsewhere.write_text("MemTotal: 9 kB\n")
        (tmp_path / "proc/meminfo").unlink()
        (tmp_path / "proc/meminfo").symlink_to(elsewhere)
        assert arcstats_path(str(tmp_path / "proc")) is None
    finally:
        elsewhere.unlink()


def test_no_more_than_the_machine_has_is_available() -> None:
    arcstats = b"x\nc_min  4 0\nsize 4 99999999\n"
    assert host_memory(b"MemTotal: 10 kB\nMemAvailable: 9 kB\n", arcstats).available == 10 << 10


@pytest.mark.parametrize("content", [b"", b"max\n", b"9223372036854771712\n", b"?"])
def test_what_is_no_limit_is_none(content: bytes) -> None:
    assert limit_bytes(content) is None and limit_bytes(content, b"7\n") == 7


def test_a_limit_above_the_machine_binds_nobody() -> None:
    assert limit_bytes(b"900\n", machine_bytes=800) is None


def test_a_stat_without_the_fields_counts_no_cache() -> None:
    assert working_bytes(10, b"anon 3\n", V2) == 10
