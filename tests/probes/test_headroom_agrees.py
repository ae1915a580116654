"""Guard, probe and training process tell the same headroom of a real control group."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.inside.headroom import left
from holdfast.probes import Scope
from holdfast.probes.cgroup import Cgroup
from holdfast.supervisor.guard.gauges import Group

from .machine import MIB, samples

# 20 MiB of its own, and 16 MiB of page cache that the group is charged with.
HOLDS = """
import os, sys
with open(sys.argv[1] + "/cgroup.procs", "w") as procs:
    procs.write(str(os.getpid()))
held = bytearray(os.urandom(1 << 20) * 20)
with open(sys.argv[2], "wb") as file:
    for _ in range(16):
        file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.root
@pytest.mark.alone
def test_page_cache_is_room_for_all_three_alike(small_group: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(small_group), str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdin is not None and child.stdout.readline() == "ready\n"
        usage = int((small_group / "memory.usage_in_bytes").read_text())
        gauge = Group(str(small_group), 1)
        assert gauge.read()
        probe = samples(Cgroup(Scope(child.pid, os.getpid(), (tmp_path,))).read(1.0))
        inside = left([{"folder": str(small_group), "version": 1}])
        child.stdin.close()
    assert usage > 36 * MIB, "the cache is charged to the group"
    assert inside is not None and inside.of == "container" and probe["cgroup.memory_limit_bytes"] == 50 * MIB
    told = (
        gauge.whole - gauge.taken,
        50 * MIB - (probe["cgroup.memory_working_bytes"] or 0),
        inside.bytes - _swap_free(),
    )
    assert max(told) - min(told) < 2 * MIB, told
    assert 15 * MIB < told[0] < 30 * MIB, "20 MiB and an interpreter of 50 MiB, the cache not counted"


def _swap_free() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("SwapFree:"))
