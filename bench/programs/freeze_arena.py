"""Runs as the first process of a namespace of its own: a neighbour, a guard and a job in one memory cgroup.

Prints one JSON line. A peer reads memory from /proc/meminfo, so it is shown the group's there, as lxcfs shows it to
containers; and it sees no process but these, so that it can kill no other.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from holdfast.journal import Journal

HERE = Path(__file__).parent
DEADLINE_S = 60.0
PLAIN_USER = 65534


def main(group: str, kind: str, guard: str, limit: int, swap: int) -> None:
    place = tempfile.mkdtemp(prefix="freeze-")
    Path(place).chmod(0o777)
    show_memory(Path(group), limit, swap, place) if guard in PEERS else None
    enter = f"echo 0 > {group}/cgroup.procs; "
    neighbour = subprocess.Popen(
        ["sh", "-c", enter + f"exec {sys.executable} {HERE}/neighbour.py 90 64"], stdout=subprocess.PIPE, text=True
    )
    assert neighbour.stdout is not None and neighbour.stdout.readline() == "ready\n"
    peer = subprocess.Popen(
        ["sh", "-c", enter + PEERS[guard]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) if guard in PEERS else None  # fmt: skip
    time.sleep(1.0)
    job = subprocess.Popen(
        ["sh", "-c", enter + job_command(kind, guard)], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        told, _ = job.communicate(timeout=DEADLINE_S)
        code = str(job.returncode)
        time.sleep(0.5)
        lived = neighbour.poll() is None and (peer is None or peer.poll() is None)
    except subprocess.TimeoutExpired:
        lived = neighbour.poll() is None and (peer is None or peer.poll() is None)
        stop_all_but(neighbour.pid)
        told, _ = job.communicate()
        code = "none"
    ended = time.time()
    alone = neighbour.poll() is None
    neighbour.terminate() if alone else None
    figures, _ = neighbour.communicate(timeout=30)
    answer = {
        **(json.loads(figures.splitlines()[-1]) if figures.strip() else {}),
        "others_lived": lived,
        "code": code,
        "lost_s": round(ended - last_saved(told), 1),
        "ran_s": round(ended - began(told), 1),
        **journal_figures(place),
    }
    print(json.dumps(answer), flush=True)


PEERS = {
    "earlyoom": "exec /tmp/peers/usr/bin/earlyoom -r 3600",
    "nohang": "exec python3 /tmp/peers/usr/sbin/nohang --monitor --config /tmp/peers/etc/nohang/nohang.conf",
}


def job_command(kind: str, guard: str) -> str:
    job = f"{sys.executable} {HERE}/growing_job.py {kind}"
    run = f"{sys.executable} -m holdfast run --max-restarts 0 sh -c 'exec {job}'"
    if guard == "cgroup":
        return f"exec {run}"
    if guard == "root":  # groups that cannot be written, as in most containers
        closed = "for f in /sys/fs/cgroup/*; do mount --bind $f $f; mount -o remount,bind,ro $f; done 2> /dev/null; "
        return f"exec unshare -m sh -c {shlex.quote(closed + 'exec ' + run)}"
    if guard == "user":
        caps = "--inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search"
        return f"exec setpriv --reuid={PLAIN_USER} --regid={PLAIN_USER} --clear-groups {caps} {run}"
    return f"exec {job}"


def show_memory(group: Path, limit: int, swap: int, place: str) -> None:
    """The group's memory as /proc/meminfo, refreshed every 5 ms by a thread outside the group."""
    shown = Path(place) / "meminfo"
    real = Path("/proc/meminfo").read_text()
    fd = os.open(shown, os.O_RDWR | os.O_CREAT, 0o644)

    def write() -> None:
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        use = int((group / "memory.usage_in_bytes").read_text())
        cache = int(stat["total_inactive_file"]) + int(stat["total_active_file"])
        free = {
            "MemTotal": limit, "MemFree": limit - use, "MemAvailable": limit - use + cache, "Cached": cache,
            "SwapTotal": swap, "SwapFree": max(0, swap - int(stat.get("total_swap", 0))),
        }  # fmt: skip
        lines = []
        for line in real.splitlines():
            name = line.split(":")[0]
            lines.append(f"{name + ':':16}{max(0, free[name]) // 1024:8} kB" if name in free else line)
        os.pwrite(fd, ("\n".join(lines) + "\n").encode(), 0)

    def keep() -> None:
        while True:
            write()
            time.sleep(0.005)

    write()
    subprocess.run(["mount", "--bind", str(shown), "/proc/meminfo"], check=True)
    threading.Thread(target=keep, daemon=True).start()


def began(told: str) -> float:
    return float(next((line.split()[1] for line in told.splitlines() if line.startswith("began")), time.time()))


def last_saved(told: str) -> float:
    return float(([line.split()[1] for line in told.splitlines() if line.startswith("saved")] or [began(told)])[-1])


def stop_all_but(kept: int) -> None:
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) not in (1, kept, os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)


def journal_figures(place: str) -> dict[str, object]:
    runs = list(Path(place).glob(".holdfast/runs/*/journal"))
    if not runs:
        return {}
    events = Journal(runs[0]).events(
        "job.contained", "guard.held", "guard.stopped", "guard.ended", "guard.ask", "kernel.line"
    )
    texts = [str(event.data.get("text")) for event in events]
    ended = next((event.data for event in events if event.kind == "guard.ended"), {})
    held = next((event.data for event in events if event.kind == "guard.held"), {})
    contained = next((event.data for event in events if event.kind == "job.contained"), {})
    return {
        "groups": contained.get("controllers"),
        "rungs": [str(event.data.get("do") or event.kind.removeprefix("guard.")) for event in events if event.kind in ("guard.ask", "guard.held", "guard.stopped")],
        "kernel_killed": any("oom-kill" in text and "/holdfast-freeze-" in text for text in texts),
        "reacted_ms": ended.get("reacted_ms"),
        "stop_ms": ended.get("took_ms"),
        "major_faults": ended.get("major_faults"),
        "held_with_mib_left": int(held["left_bytes"]) >> 20 if held else None,
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
