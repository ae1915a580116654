"""Memory, swap, limits, control groups, processors and the kernel's log of a machine that is made of files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import pytest

from holdfast.checks import CHECKS, control_groups, kernel_log, limits, memory, processors, shared_memory, swap
from holdfast.checks.contract import Here, Line
from tests.probes.machine import GIB, MIB, FakeMachine

KIB_A_GIB = 1 << 20


def told(lines: Iterable[Line]) -> list[tuple[str, str]]:
    """Whatever is not ok has a fix."""
    found = list(lines)
    assert [line.id for line in found if (line.status == "ok") == bool(line.fix)] == []
    return [(line.id, line.status) for line in found]


# -- memory


@pytest.mark.parametrize(
    ("available_mib", "status"), [(20_000, "ok"), (2048, "ok"), (2000, "warn"), (128, "warn"), (100, "bad")]
)
def test_memory_that_is_available(machine: FakeMachine, here: Here, available_mib: int, status: str) -> None:
    machine.meminfo(MemTotal=24 * KIB_A_GIB, MemAvailable=available_mib * 1024)
    assert told(memory.look(here)) == [("memory", status)]


@pytest.mark.parametrize(
    ("mode", "committed_gib", "status"), [(0, 30, "ok"), (2, 10, "ok"), (2, 21, "warn"), (2, 24, "bad"), (2, 30, "bad")]
)
def test_memory_that_the_kernel_may_still_promise(
    machine: FakeMachine, here: Here, mode: int, committed_gib: int, status: str
) -> None:
    machine.write("/proc/sys/vm/overcommit_memory", f"{mode}\n")
    machine.meminfo(
        MemTotal=24 * KIB_A_GIB, MemAvailable=20 * KIB_A_GIB, CommitLimit=24 * KIB_A_GIB,
        Committed_AS=committed_gib * KIB_A_GIB,
    )  # fmt: skip
    assert told(memory.look(here))[1:] == [("overcommit", status)]


# -- swap


def swap_area(machine: FakeMachine, area: str, used_gib: float = 0.0) -> None:
    machine.meminfo(
        MemTotal=24 * KIB_A_GIB, MemAvailable=20 * KIB_A_GIB, SwapTotal=8 * KIB_A_GIB,
        SwapFree=round((8 - used_gib) * KIB_A_GIB),
    )  # fmt: skip
    machine.write("/proc/swaps", f"Filename\tType\tSize\tUsed\tPriority\n{area} partition 8388604 0 -2\n")


def disk(machine: FakeMachine, name: str, spins: int, model: str) -> None:
    machine.write(f"/sys/block/{name}/queue/rotational", f"{spins}\n")
    machine.write(f"/sys/block/{name}/device/model", f"{model}\n")


@pytest.mark.parametrize(("used_gib", "status"), [(0.0, "ok"), (3.9, "ok"), (5.0, "warn")])
def test_swap_that_is_used(machine: FakeMachine, here: Here, used_gib: float, status: str) -> None:
    swap_area(machine, "/dev/nvme0n1p3", used_gib)
    assert told(swap.look(here)) == [("swap", status)]


def test_no_swap_is_fine(machine: FakeMachine, here: Here) -> None:
    machine.meminfo(MemTotal=24 * KIB_A_GIB, MemAvailable=20 * KIB_A_GIB, SwapTotal=0, SwapFree=0)
    assert told(swap.look(here)) == [("swap", "ok")]


@pytest.mark.parametrize(
    ("about", "status"),
    [
        (("sda", 1, "ST4000DM004"), "warn"),
        (("sda", 0, "Samsung SSD 870"), "ok"),
        (("sda", 1, "QEMU HARDDISK"), "ok"),  # calls itself spinning whatever it lies on
        (("vda", 1, ""), "ok"),
    ],
)
def test_swap_on_a_spinning_disk(machine: FakeMachine, here: Here, about: tuple[str, int, str], status: str) -> None:
    disk(machine, *about)
    swap_area(machine, f"/dev/{about[0]}2")
    assert told(swap.look(here)) == [("swap", status)]


@pytest.mark.parametrize(("kind", "status"), [("nfs4", "warn"), ("ext4", "ok")])
def test_a_swap_file_on_a_network_file_system(machine: FakeMachine, here: Here, kind: str, status: str) -> None:
    machine.mounts("8:1 / / ext4 rw", f"0:50 / /far {kind} rw", pid=here.pid)
    swap_area(machine, "/far/swapfile")
    assert told(swap.look(here)) == [("swap", status)]


# -- limits


def write_limits(machine: FakeMachine, here: Here, **soft: int | str) -> None:
    usual: dict[str, int | str] = {
        "data size": "unlimited", "processes": "unlimited", "open files": 65536, "address space": "unlimited",
    }  # fmt: skip
    usual |= {name.replace("_", " "): value for name, value in soft.items()}
    rows = [f"{'Max ' + name:<26}{value:<21}{'unlimited':<21}bytes" for name, value in usual.items()]
    head = "Limit                     Soft Limit           Hard Limit           Units"
    machine.write(f"/proc/{here.pid}/limits", "\n".join([head, *rows]) + "\n")


@pytest.mark.parametrize(
    ("limit", "value", "status"),
    [
        ("address_space", 1 * GIB, "bad"),
        ("address_space", 30 * GIB, "warn"),
        ("address_space", 100 * GIB, "ok"),
        ("data_size", 100 * MIB, "bad"),
        ("data_size", 2 * GIB, "warn"),
        ("open_files", 64, "bad"),
        ("open_files", 512, "warn"),
        ("open_files", 1024, "ok"),
    ],
)
def test_limits_of_a_process(machine: FakeMachine, here: Here, limit: str, value: int, status: str) -> None:
    write_limits(machine, here, **{limit: value})
    assert told(limits.look(here)) == [("limits", status)]


@pytest.mark.parametrize(
    ("allowed", "uid", "status"), [(4096, "own", "ok"), (200, "own", "warn"), (80, "own", "bad"), (80, "root", "ok")]
)
def test_processes_of_a_user(machine: FakeMachine, here: Here, allowed: int, uid: str, status: str) -> None:
    """The files of the fake machine belong to whoever runs this test."""
    machine.process(500, 1, threads=60)
    write_limits(machine, here, processes=allowed)
    owner = (machine.root / "proc/500").stat().st_uid
    if owner == 0:
        os.chown(machine.root / "proc/500", 1000, -1)
        owner = 1000
    assert told(limits.look(replace(here, uid=0 if uid == "root" else owner))) == [("limits", status)]


# -- control groups


def version_2(machine: FakeMachine, here: Here, **files: str | int) -> None:
    machine.meminfo(MemTotal=64 * KIB_A_GIB, MemAvailable=60 * KIB_A_GIB)
    machine.write(f"/proc/{here.pid}/cgroup", "0::/pod\n")
    machine.mounts("0:30 / /sys/fs/cgroup cgroup2 rw", pid=here.pid)
    usual: dict[str, str | int] = {
        "memory_max": 16 * GIB, "memory_high": "max", "memory_current": GIB, "memory_stat": "inactive_file 0",
        "pids_max": "max", "pids_current": 20,
    }  # fmt: skip
    machine.group("/sys/fs/cgroup/pod", **usual | files)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, [("cgroup-memory", "ok")]),
        ({"memory_max": "max"}, [("cgroup-memory", "ok")]),
        ({"memory_current": 15 * GIB}, [("cgroup-memory", "warn")]),
        ({"memory_current": 16 * GIB - 100 * MIB}, [("cgroup-memory", "bad")]),
        (  # page cache gives way
            {"memory_current": 16 * GIB - 100 * MIB, "memory_stat": f"inactive_file {10 * GIB}"},
            [("cgroup-memory", "ok")],
        ),
        ({"memory_high": 12 * GIB}, [("cgroup-memory", "ok"), ("cgroup-high", "warn")]),
        ({"memory_high": 12 * GIB, "memory_max": "max"}, [("cgroup-memory", "ok"), ("cgroup-high", "warn")]),
        ({"memory_oom_group": 1}, [("cgroup-memory", "ok"), ("cgroup-oom-group", "warn")]),
        ({"memory_oom_group": 0}, [("cgroup-memory", "ok")]),
        ({"pids_max": 1000}, [("cgroup-memory", "ok"), ("cgroup-processes", "ok")]),
        ({"pids_max": 100}, [("cgroup-memory", "ok"), ("cgroup-processes", "warn")]),
        ({"pids_max": 40}, [("cgroup-memory", "ok"), ("cgroup-processes", "bad")]),
    ],
)
def test_groups_of_version_2(
    machine: FakeMachine, here: Here, files: dict[str, str | int], expected: list[tuple[str, str]]
) -> None:
    version_2(machine, here, **files)
    assert told(control_groups.look(here)) == expected


@pytest.mark.parametrize(("usage", "status"), [(GIB, "ok"), (7 * GIB, "warn"), (8 * GIB - MIB, "bad")])
def test_groups_of_version_1(machine: FakeMachine, here: Here, usage: int, status: str) -> None:
    machine.meminfo(MemTotal=64 * KIB_A_GIB, MemAvailable=60 * KIB_A_GIB)
    machine.write(f"/proc/{here.pid}/cgroup", "4:memory:/docker/abc\n")
    machine.mounts("0:30 / /sys/fs/cgroup/memory cgroup rw,memory", pid=here.pid)
    machine.group(
        "/sys/fs/cgroup/memory/docker/abc", memory_limit__in__bytes=8 * GIB, memory_usage__in__bytes=usage,
        memory_stat="total_inactive_file 0",
    )  # fmt: skip
    assert told(control_groups.look(here)) == [("cgroup-memory", status)]


# -- /dev/shm, the kernel's log


@pytest.mark.parametrize(
    ("free", "total", "status"),
    [
        (8 * GIB, 8 * GIB, "ok"),
        (512 * MIB, 8 * GIB, "warn"),
        (200 * MIB, 200 * MIB, "warn"),
        (8 * MIB, 8 * GIB, "bad"),
        (64 * MIB, 64 * MIB, "bad"),
    ],
)
def test_shared_memory(free: int, total: int, status: str) -> None:
    assert told([shared_memory.judged(free, total)]) == [("shm", status)]


def test_beside_a_run_nothing_is_judged_that_the_job_uses_up(machine: FakeMachine, here: Here) -> None:
    beside = replace(here, job_runs=True)
    assert {"memory", "cgroup-memory", "shm"}.isdisjoint({check.id for check in CHECKS if check.beside_a_run})
    write_limits(machine, here, processes=1)
    assert told(limits.look(beside)) == [("limits", "ok")]
    write_limits(machine, here, open_files=64)
    assert told(limits.look(beside)) == [("limits", "bad")]


def test_no_shared_memory_at_all(here: Here) -> None:
    assert told(shared_memory.look(here)) == [("shm", "bad")]


def test_the_kernel_log(machine: FakeMachine, here: Here) -> None:
    assert told(kernel_log.look(here)) == [("kernel-log", "warn")]
    machine.write("/dev/kmsg", "")
    assert told(kernel_log.look(here)) == [("kernel-log", "ok")]


# -- processors


def quota(machine: FakeMachine, here: Here, cores: str) -> None:
    machine.write(f"/proc/{here.pid}/cgroup", "0::/pod\n")
    machine.mounts("0:30 / /sys/fs/cgroup cgroup2 rw", pid=here.pid)
    machine.group("/sys/fs/cgroup/pod", cgroup_procs="", cpu_max=cores)


@pytest.mark.parametrize(
    ("cpu_max", "environment", "status"),
    [
        ("max 100000", {}, "ok"),
        ("max 100000", {"OMP_NUM_THREADS": "1"}, "ok"),
        ("max 100000", {"OMP_NUM_THREADS": "1000"}, "warn"),
        ("max 100000", {"MKL_NUM_THREADS": "many"}, "warn"),
        ("1000 100000", {}, "warn"),  # frameworks count the processors they see
        ("1000 100000", {"OMP_NUM_THREADS": "1"}, "ok"),
    ],
)
def test_threads_against_cores(
    machine: FakeMachine, here: Here, cpu_max: str, environment: dict[str, str], status: str
) -> None:
    quota(machine, here, cpu_max)
    assert told(processors.look(replace(here, environment=environment))) == [("cpu-threads", status)]
