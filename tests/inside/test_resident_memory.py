"""What is kept is told from what merely became resident."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MIB = 1 << 20
SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = """
import mmap, os, sys, types
sys.path.insert(0, {source!r})
from holdfast.inside.resident_memory import Resident
told = {{"rss_bytes": [], "kept_bytes": [], "not_kept_bytes": []}}
writer = types.SimpleNamespace(value=lambda at, step, name, value: told[name].append(value))
{before}
resident = Resident(types.SimpleNamespace(writer=writer, steps=0))
resident.look(0.0)
kept = []
for step in range(1, 41):
    {step}
    resident.look(float(step))
print(int(told["kept_bytes"][-1] - told["kept_bytes"][0]), int(told["not_kept_bytes"][-1] - told["not_kept_bytes"][0]))
"""


def rises(tmp_path: Path, before: str, step: str) -> tuple[int, int]:
    """By how much that which is kept rose over forty steps of 4 MiB, and the rest."""
    program = PROGRAM.format(source=str(SOURCE), before=before, step=textwrap.indent(step, "    ").strip())
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True
    )
    kept, rest = done.stdout.split()
    return int(kept), int(rest)


def test_memory_that_is_asked_for_anew_is_kept(tmp_path: Path) -> None:
    kept, _ = rises(tmp_path, "", "kept.append(b'x' * (4 << 20))")
    assert kept == pytest.approx(160 * MIB, rel=0.1)


def test_a_buffer_made_before_that_is_filled_step_by_step_is_not(tmp_path: Path) -> None:
    made = "ring = mmap.mmap(-1, 160 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"
    kept, rest = rises(tmp_path, made, "ring[(step - 1) << 22 : step << 22] = b'x' * (4 << 20)")
    assert kept < 16 * MIB and rest > 120 * MIB


def test_a_buffer_made_while_it_runs_is_not_either(tmp_path: Path) -> None:
    made = "ring = None"
    step = (
        "if step == 3: ring = mmap.mmap(-1, 160 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "if ring: ring[(step - 1) << 22 : step << 22] = b'x' * (4 << 20)"
    )
    kept, rest = rises(tmp_path, made, step)
    assert kept < 32 * MIB and rest > 100 * MIB


def test_what_falls_and_rises_again_is_where_it_was(tmp_path: Path) -> None:
    step = "kept.append(b'x' * (4 << 20))\nif step % 10 == 0: kept.clear()"
    kept, _ = rises(tmp_path, "", step)
    assert abs(kept) < 16 * MIB


def test_a_mapped_file_that_is_read_is_not(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"x" * (160 * MIB))
    opened = "data = mmap.mmap(os.open('data.bin', os.O_RDONLY), 0, prot=mmap.PROT_READ)"
    kept, rest = rises(tmp_path, opened, "sum(data[(step - 1) << 22 : step << 22 : 4096])")
    assert kept < 16 * MIB and rest > 100 * MIB
