"""What a neighbour suffers while a training job eats all memory: bare, beside its peers, and under Holdfast.

    python -m bench.freeze [--jobs leak,fast] [--swaps none,file,slow] [--guards bare,earlyoom,nohang,cgroup,root,user]

Needs root and cgroup v1. Everything happens in one memory cgroup of 1 GiB; the swap is a file, or a loop device that
is throttled. The peers are looked for in /tmp/peers (`apt-get download earlyoom nohang`, `dpkg -x … /tmp/peers`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.holdfast_command import program
from lab.stage import Hierarchy

LIMIT, SWAP = 1 << 30, 1 << 30
SLOW_PER_S = 20 << 20  # an SD card, or a disk that others use too
GUARDS = ("bare", "earlyoom", "nohang", "cgroup", "root", "user")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", default="leak,fast")
    parser.add_argument("--swaps", default="none,file,slow")
    parser.add_argument("--guards", default=",".join(GUARDS))
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # swap and devices are given back
    if not chosen.json:
        print(f"{'job':5} {'swap':5} {'guard':9} {'worst':>9} {'99.9 %':>8}  others  job's end    lost  how")
    for swap in chosen.swaps.split(","):
        with swap_space(swap):
            for job in chosen.jobs.split(","):
                for guard in chosen.guards.split(","):
                    figures = {"job": job, "swap": swap, "guard": guard, **measure(job, swap, guard)}
                    print(json.dumps(figures) if chosen.json else row(figures), flush=True)


def row(got: dict[str, Any]) -> str:
    how = ""
    if got.get("rungs"):
        how = f"{'>'.join(got['rungs'])}; held with {got['held_with_mib_left']} MiB left, stop within {got['reacted_ms']} ms, "
        how += f"{got['major_faults']} major faults{', kernel killed too' if got['kernel_killed'] else ''}"
    if "groups" in got and bool(got["groups"]) != (got["guard"] == "cgroup"):
        raise SystemExit(f"not the tier it should be: {got}")  # else the row's name would not be true
    others = "lived" if got["others_lived"] else "DIED"
    return (
        f"{got['job']:5} {got['swap']:5} {got['guard']:9} {got.get('worst_ms', 0):6.0f} ms {got.get('p999_ms', 0):5.0f} ms"
        f"  {others:6}  code {got['code']:>5}  {got['lost_s']:5.1f} s  {how}"
    )


def measure(job: str, swap: str, guard: str) -> dict[str, Any]:
    group, is_v2 = Hierarchy().create("memory", f"holdfast-freeze-{os.getpid()}")
    if is_v2:
        raise SystemExit("this figure needs cgroup v1")
    allowed = SWAP if swap != "none" else 0
    try:
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        (group / "memory.memsw.limit_in_bytes").write_text(str(LIMIT + allowed))
        inner = [sys.executable, program("freeze_arena.py"), str(group), job, guard, str(LIMIT), str(allowed)]
        alone = ["unshare", "-m", "-p", "--fork", "--mount-proc", "--kill-child", *inner]
        done = subprocess.run(
            alone, capture_output=True, text=True, timeout=150, check=False, cwd=Path(__file__).parents[1]
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise SystemExit(f"{job} {swap} {guard}: {done.stderr[-2000:]}")
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                for left in group.glob("holdfast-job-*"):  # of a run that was cut off at the deadline
                    left.rmdir()
                group.rmdir()
                break
            subprocess.run(["sleep", "0.1"], check=False)


@contextlib.contextmanager
def swap_space(kind: str) -> Iterator[None]:
    if kind == "none":
        yield
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as undo:
        path = Path(folder) / "swap"
        outer = ""
        if kind == "slow":
            outer = _loop(_file(Path(folder) / "outer", SWAP + SWAP // 8), undo)
            _run("mkfs.ext4", "-q", "-O", "^has_journal", outer)
            path = Path(folder) / "mounted" / "swap"
            path.parent.mkdir()
            _run("mount", outer, str(path.parent))
            undo.callback(_run, "umount", str(path.parent))
        device = str(_file(path, SWAP + (16 << 20)))
        if kind == "slow":
            device = _loop(path, undo, "--direct-io=on")
        _run("mkswap", device)
        _run("swapon", device)
        undo.callback(_run, "swapoff", device)
        if outer:
            _throttle(outer, undo)
        yield


def _file(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        path.chmod(0o600)
        for _ in range(size >> 20):  # written, not only reserved: direct access to a hole is slow in another way
            file.write(bytes(1 << 20))
        os.fsync(file.fileno())
    return path


def _loop(path: Path, undo: contextlib.ExitStack, *options: str) -> str:
    device = _run("losetup", "--find", "--show", *options, str(path))
    undo.callback(_run, "losetup", "--detach", device)
    return device


def _throttle(device: str, undo: contextlib.ExitStack) -> None:
    """The device below the swap's file system: blkio does not throttle what is swapped itself."""
    number = os.stat(device).st_rdev
    for way in ("read", "write"):
        limit = Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device")
        limit.write_text(f"{os.major(number)}:{os.minor(number)} {SLOW_PER_S}")
        undo.callback(limit.write_text, f"{os.major(number)}:{os.minor(number)} 0")


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
