"""What a job holds, weighed on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from holdfast.inside.held_memory import held_bytes
from holdfast.probes.job_memory import JobMemory

MIB = 1 << 20
# A parent with 64 MiB that its two forked children share, a mapped file of 64 MiB, and 16 MiB of shared memory.
FAMILY = """
import mmap, os, sys
kept = bytearray(os.urandom(1 << 20) * 64)
file = open(sys.argv[1], "r+b")
mapped = mmap.mmap(file.fileno(), 0)
read = sum(mapped[i] for i in range(0, len(mapped), 4096))
shared = mmap.mmap(-1, 16 << 20)
shared.write(bytes(16 << 20))
children = []
for _ in range(2):
    child = os.fork()
    if not child:
        sys.stdin.readline()
        os._exit(0)
    children.append(child)
print(*children, flush=True)
sys.stdin.readline()
"""


def test_shared_pages_count_once_and_mapped_files_not_at_all(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(64 * MIB))
    command = [sys.executable, "-c", FAMILY, str(data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        pids = [parent.pid, *map(int, parent.stdout.readline().split())]
        resident = sum(_resident(pid) for pid in pids)
        memory = JobMemory()
        assert memory.weigh(pids, resident)
        held = memory.held_bytes(resident)
        alone = held_bytes(Path(f"/proc/{parent.pid}/status").read_bytes())
        parent.stdin.write("\n\n\n")
        parent.stdin.close()
    assert 80 * MIB <= held < 110 * MIB, "64 MiB and 16 MiB shared, and what three interpreters have each"
    assert resident > held + 64 * MIB, "the sum of sizes counts the file, and the 64 MiB once for each"
    assert alone is not None and 80 * MIB <= alone < 110 * MIB


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_in_between_it_changes_as_the_sizes_do() -> None:
    memory = JobMemory()
    assert memory.held_bytes(5.0 * MIB) == 5 * MIB, "nothing was weighed yet"
    assert memory.weigh([os.getpid()], 100.0 * MIB)
    assert memory.held_bytes(107.0 * MIB) == memory.held_bytes(100.0 * MIB) + 7 * MIB
    assert not memory.weigh([], 0.0)
