from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.probes import Missing, Scope
from holdfast.probes.cgroup import Cgroup
from holdfast.probes.kernel_log import KernelLog
from holdfast.probes.vmstat import Vmstat

from .machine import GIB, MIB, SCRIPT, FakeMachine, events, reasons, samples

V1_MOUNT = "0:32 {} /sys/fs/cgroup/memory cgroup rw,memory"
V2_MOUNT = "0:38 {} /sys/fs/cgroup cgroup2 rw"
V1_NO_LIMIT = 9223372036854771712


def v2(machine: FakeMachine, path: str, limit: int | str, usage: int, **more: str | int) -> None:
    files = {
        "memory_max": limit,
        "memory_current": usage,
        "memory_stat": "anon 1\ninactive_file 0\nactive_file 0",
        "memory_high": "max",
        "memory_events": "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0",
        "memory_swap_current": 0,
    }
    machine.group(path, **(files | more))


def v1(machine: FakeMachine, path: str, limit: int, usage: int, **more: str | int) -> None:
    files = {
        "memory_limit__in__bytes": limit,
        "memory_usage__in__bytes": usage,
        "memory_stat": "inactive_file 1\nactive_file 1\ntotal_inactive_file 0\ntotal_active_file 0\ntotal_swap 0",
        "memory_oom__control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0",
        "memory_failcnt": 0,
    }
    machine.group(path, **(files | more))


def belongs_to(machine: FakeMachine, *lines: str) -> None:
    machine.meminfo(MemTotal=64 * GIB // 1024)
    machine.write(f"/proc/{SCRIPT}/cgroup", "".join(line + "\n" for line in lines))


def test_version_2_tells_limit_use_and_kills(machine: FakeMachine) -> None:
    belongs_to(machine, "0::/job")
    machine.mounts(V2_MOUNT.format("/"))
    stat = f"anon 1\ninactive_file {1 * GIB}\nactive_file {2 * GIB}"
    told = "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2"
    v2(machine, "/sys/fs/cgroup/job", 8 * GIB, 7 * GIB, memory_stat=stat, memory_events=told, memory_high=6 * GIB)
    machine.group("/sys/fs/cgroup/job", pids_current=12, pids_max=100, pids_events="max 4")
    found = Cgroup(machine.scope()).read(1.0)
    assert samples(found) == {
        "cgroup.memory_limit_bytes": 8 * GIB,
        "cgroup.memory_usage_bytes": 7 * GIB,
        "cgroup.memory_working_bytes": 4 * GIB,
        "cgroup.memory_peak_bytes": None,
        "cgroup.memory_high_bytes": 6 * GIB,
        "cgroup.oom_kill_count": 2,
        "cgroup.limit_hit_count": 3,
        "cgroup.swap_usage_bytes": 0,
        "cgroup.pids_limit_count": 100,
        "cgroup.pids_count": 12,
        "cgroup.pids_refused_count": 4,
    }
    (about,) = events(found, "cgroup.found")
    folder = str(machine.root / "sys/fs/cgroup/job")
    assert about.data == {"version": 2, "path": "/job", "limit_bytes": 8 * GIB, "limit_path": folder}


def test_the_ancestor_that_leaves_least_room_binds(machine: FakeMachine) -> None:
    belongs_to(machine, "0::/slice/job")
    machine.mounts(V2_MOUNT.format("/"))
    v2(machine, "/sys/fs/cgroup/slice/job", 8 * GIB, 1 * GIB)
    v2(machine, "/sys/fs/cgroup/slice", 16 * GIB, 15 * GIB, memory_events="oom 5\noom_kill 5")
    found = Cgroup(machine.scope()).read(1.0)
    values = samples(found)
    assert values["cgroup.memory_limit_bytes"] == 16 * GIB
    assert values["cgroup.memory_usage_bytes"] == 15 * GIB
    assert values["cgroup.limit_hit_count"] == 5
    assert values["cgroup.oom_kill_count"] == 0, "a neighbour's death is not the job's"


def test_version_1_uses_the_totals_of_the_whole_subtree(machine: FakeMachine) -> None:
    belongs_to(machine, "4:memory:/job", "3:pids:/")
    machine.mounts(V1_MOUNT.format("/"))
    stat = f"inactive_file 5\nactive_file 5\ntotal_inactive_file {GIB}\ntotal_active_file 0\ntotal_swap 77"
    killed = "oom_kill_disable 0\nunder_oom 0\noom_kill 6"
    v1(
        machine,
        "/sys/fs/cgroup/memory/job",
        4 * GIB,
        3 * GIB,
        memory_stat=stat,
        memory_oom__control=killed,
        memory_failcnt=9,
    )
    v1(machine, "/sys/fs/cgroup/memory", V1_NO_LIMIT, 20 * GIB)
    found = Cgroup(machine.scope()).read(1.0)
    values = samples(found)
    assert values["cgroup.memory_limit_bytes"] == 4 * GIB
    assert values["cgroup.memory_working_bytes"] == 2 * GIB
    assert values["cgroup.oom_kill_count"] == 6
    assert values["cgroup.limit_hit_count"] == 9
    assert values["cgroup.swap_usage_bytes"] == 77
    assert reasons(found)["cgroup.memory_high_bytes"] == "version 1 has none"


@pytest.mark.parametrize("limit", [V1_NO_LIMIT, 65 * GIB])
def test_a_limit_above_the_memory_of_the_machine_is_none(machine: FakeMachine, limit: int) -> None:
    belongs_to(machine, "4:memory:/job")
    machine.mounts(V1_MOUNT.format("/"))
    v1(machine, "/sys/fs/cgroup/memory/job", limit, 3 * GIB)
    found = Cgroup(machine.scope()).read(1.0)
    assert reasons(found)["cgroup.memory_limit_bytes"] == "no limit"
    assert samples(found)["cgroup.memory_usage_bytes"] == 3 * GIB


def test_with_both_versions_mounted_the_one_that_has_memory_counts(machine: FakeMachine) -> None:
    belongs_to(machine, "4:memory:/process_api/abc", "0::/")
    machine.mounts(V1_MOUNT.format("/"), "0:38 / /sys/fs/cgroup/unified cgroup2 rw")
    machine.write("/sys/fs/cgroup/unified/memory.pressure", "")
    v1(machine, "/sys/fs/cgroup/memory/process_api/abc", GIB, MIB)
    (about,) = events(Cgroup(machine.scope()).read(1.0), "cgroup.found")
    assert (about.data["version"], about.data["limit_bytes"]) == (1, GIB)


def test_with_version_1_only_for_systemd_memory_is_found_in_version_2(machine: FakeMachine) -> None:
    belongs_to(machine, "1:name=systemd:/user.slice", "0::/user.slice")
    machine.mounts("0:30 / /sys/fs/cgroup/systemd cgroup rw,name=systemd", "0:38 / /sys/fs/cgroup/unified cgroup2 rw")
    v2(machine, "/sys/fs/cgroup/unified/user.slice", GIB, MIB)
    assert samples(Cgroup(machine.scope()).read(1.0))["cgroup.memory_limit_bytes"] == GIB


@pytest.mark.parametrize(
    ("path", "mount_root"),
    [
        ("/", "/"),  # a namespace of its own
        ("/docker/abc", "/docker/abc"),  # the host's names in both places
        ("/docker/abc", "/"),  # the host's name, but a mount that shows only the container
        ("/../abc", "/"),  # seen from a namespace beside it
        ("/../..", "/../.."),
        ("/docker/abc/sub", "/docker/abc"),  # a folder that the mount does not show
    ],
)
def test_in_a_container_the_limit_is_found(machine: FakeMachine, path: str, mount_root: str) -> None:
    belongs_to(machine, f"0::{path}")
    machine.mounts(V2_MOUNT.format(mount_root))
    v2(machine, "/sys/fs/cgroup", 2 * GIB, GIB)
    assert samples(Cgroup(machine.scope()).read(1.0))["cgroup.memory_limit_bytes"] == 2 * GIB


def test_a_group_made_inside_a_container_is_found_below_its_mount(machine: FakeMachine) -> None:
    belongs_to(machine, "4:memory:/docker/abc/job")
    machine.mounts(V1_MOUNT.format("/docker/abc"))
    v1(machine, "/sys/fs/cgroup/memory", 8 * GIB, 2 * GIB)
    v1(machine, "/sys/fs/cgroup/memory/job", 4 * GIB, 2 * GIB)
    assert samples(Cgroup(machine.scope()).read(1.0))["cgroup.memory_limit_bytes"] == 4 * GIB


def test_a_script_put_into_another_group_is_followed(machine: FakeMachine) -> None:
    belongs_to(machine, "0::/a")
    machine.mounts(V2_MOUNT.format("/"))
    v2(machine, "/sys/fs/cgroup/a", "max", MIB)
    v2(machine, "/sys/fs/cgroup/b", GIB, MIB)
    probe = Cgroup(machine.scope())
    assert reasons(probe.read(1.0))["cgroup.memory_limit_bytes"] == "no limit"
    belongs_to(machine, "0::/b")
    found = probe.read(2.0)
    assert samples(found)["cgroup.memory_limit_bytes"] == GIB
    assert events(found, "cgroup.found")


def test_a_process_that_dies_does_not_seem_to_move_to_the_root(machine: FakeMachine) -> None:
    belongs_to(machine, "4:memory:/job")
    machine.mounts(V1_MOUNT.format("/"))
    v1(machine, "/sys/fs/cgroup/memory", V1_NO_LIMIT, 20 * GIB)
    v1(machine, "/sys/fs/cgroup/memory/job", GIB, MIB)
    probe = Cgroup(machine.scope())
    belongs_to(machine, "4:memory:/")
    assert samples(probe.closing(2.0))["cgroup.memory_limit_bytes"] == GIB


def test_a_group_that_vanishes_leaves_reasons(machine: FakeMachine) -> None:
    belongs_to(machine, "0::/job")
    machine.mounts(V2_MOUNT.format("/"))
    v2(machine, "/sys/fs/cgroup/job", GIB, MIB)
    probe = Cgroup(machine.scope())
    probe.read(1.0)
    for file in (machine.root / "sys/fs/cgroup/job").iterdir():
        file.unlink()
    assert reasons(probe.read(2.0))["cgroup.memory_usage_bytes"].endswith("No such file or directory")


def test_a_limit_changed_while_running_is_noticed(machine: FakeMachine) -> None:
    belongs_to(machine, "0::/job")
    machine.mounts(V2_MOUNT.format("/"))
    v2(machine, "/sys/fs/cgroup/job", GIB, MIB)
    probe = Cgroup(machine.scope())
    probe.read(1.0)
    v2(machine, "/sys/fs/cgroup/job", 2 * GIB, MIB)
    assert samples(probe.read(10.0))["cgroup.memory_limit_bytes"] == 2 * GIB


def test_without_control_groups_there_is_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="no control groups"):
        Cgroup(machine.scope())


HOG = "import sys; sys.stdin.readline(); x = bytearray(200 << 20); print('survived')"


@pytest.mark.root
@pytest.mark.alone
def test_a_real_kill_is_seen_by_the_group_the_kernel_counters_and_the_kernel_log(small_group: Path) -> None:
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("the kernel log cannot be read here")
    hog = subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    (small_group / "memory.swappiness").write_text("0")
    (small_group / "cgroup.procs").write_text(str(hog.pid))
    scope = Scope(hog.pid, os.getpid(), (Path.cwd(),))
    group, counters = Cgroup(scope), Vmstat(scope)
    log = KernelLog(scope)
    before, kills_before = samples(group.read(1.0)), samples(counters.read(1.0))
    assert before["cgroup.memory_limit_bytes"] == 50 * MIB
    assert before["cgroup.oom_kill_count"] == 0

    hog.communicate(b"\n")
    assert hog.returncode == -signal.SIGKILL
    after = samples(group.closing(2.0))
    assert after["cgroup.oom_kill_count"] == 1
    assert (after["cgroup.limit_hit_count"] or 0) > 0
    assert (samples(counters.read(2.0))["host.oom_kill_count"] or 0) > (kills_before["host.oom_kill_count"] or 0)
    lines: list[str] = []
    deadline = time.monotonic() + 20
    while not any(f"Killed process {hog.pid} " in line for line in lines) and time.monotonic() < deadline:
        lines += [line.data["text"] for line in events(log.read(2.0), "kernel.line")]
        time.sleep(0.05)
    log.close()
    assert any(f"Killed process {hog.pid} " in line for line in lines)
    # Of ten kills within five seconds the kernel tells the rest in one line each.
    told = [line for line in lines if line.startswith("oom-kill:")]
    if told:
        assert any(small_group.name in line for line in told)


@pytest.mark.root
@pytest.mark.alone
def test_page_cache_in_a_real_group_is_not_memory_in_use(small_group: Path, tmp_path: Path) -> None:
    big = tmp_path / "data"
    big.write_bytes(bytes(20 * MIB))
    os.sync()
    code = f"import os,sys; fd=os.open({str(big)!r}, os.O_RDONLY); sys.stdin.readline()\n"
    code += "os.posix_fadvise(fd,0,0,os.POSIX_FADV_DONTNEED)\nwhile os.read(fd, 1<<20): pass\n"
    code += "print('read', flush=True); sys.stdin.readline()"
    reader = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert reader.stdin is not None and reader.stdout is not None
    (small_group / "cgroup.procs").write_text(str(reader.pid))
    reader.stdin.write(b"\n")
    reader.stdin.flush()
    reader.stdout.readline()
    deadline = time.monotonic() + 30
    found = samples(Cgroup(Scope(reader.pid, os.getpid(), (tmp_path,))).read(1.0))
    while (found["cgroup.memory_usage_bytes"] or 0) < 20 * MIB and time.monotonic() < deadline:
        time.sleep(0.2)
        found = samples(Cgroup(Scope(reader.pid, os.getpid(), (tmp_path,))).read(1.0))
    reader.communicate(b"\n")
    assert (found["cgroup.memory_usage_bytes"] or 0) >= 20 * MIB
    working = found["cgroup.memory_working_bytes"]
    assert working is not None and working < 15 * MIB


def test_the_level_that_is_throttled_first_binds(machine: FakeMachine) -> None:
    machine.mounts("0:30 / /sys/fs/cgroup cgroup2 rw")
    machine.write(f"/proc/{SCRIPT}/cgroup", "0::/pod/job\n")
    v2(machine, "/sys/fs/cgroup/pod", 20 * GIB, 7 * GIB, memory_high=8 * GIB)
    v2(machine, "/sys/fs/cgroup/pod/job", 10 * GIB, 6 * GIB, memory_high="max")
    found = samples(Cgroup(machine.scope()).read(1.0))
    assert (found["cgroup.memory_limit_bytes"], found["cgroup.memory_high_bytes"]) == (20 * GIB, 8 * GIB)
    assert found["cgroup.memory_usage_bytes"] == 7 * GIB
