"""What `holdfast top` costs on the record of a day with 100 signals a second: python -m bench.top [HOURS]"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import struct
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from statistics import median

from holdfast.cli.recording import any_alive
from holdfast.cli.top import judged
from holdfast.journal import JournalWriter
from holdfast.views.overview import RunReader
from holdfast.vocabulary import Event, Sample

SIGNALS = 100
WATCH_S = 40.0
GIB = float(1 << 30)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class LongRun:
    """Written as the watcher does, with thinning, on a clock of its own. It is ours, so it goes on as long as we do."""

    def __init__(self, run: Path, hours: float) -> None:
        (run / "journal").mkdir(parents=True)
        self._now = time.time() - hours * 3600
        self._writer = JournalWriter(run / "journal", "watcher", clock=lambda: self._now)
        self._seconds = 0
        started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        watcher = {"watched_by": os.getpid(), "watcher_started": float(started)}
        self._writer.event(Event("run.start", self._now, {"command": ["python", "train.py"], **watcher}))

    def second(self) -> None:
        self._now += 1.0
        self._seconds += 1
        self._writer.samples(self._now, [Sample(name, value, self._now) for name, value in self._values().items()])
        self._writer.tend(self._now)

    def _values(self) -> dict[str, float]:
        """Of a healthy training, a little restless."""
        noise, second = random.random(), self._seconds
        values = {
            "host.memory_total_bytes": 64 * GIB,
            "host.memory_available_bytes": (40 + noise) * GIB,
            "job.held_bytes": (9 + noise) * GIB,
            "job.memory_budget_bytes": 48 * GIB,
            "job.cpu_s": second * 3.5,
            "job.threads_count": 40.0,
            "job.silent_s": 0.0,
            "gpu0.memory_used_bytes": 30 * GIB,
            "gpu0.memory_total_bytes": 80 * GIB,
            "gpu0.utilisation_percent": 90 + 10 * noise,
            "train.steps_count": second * 8.0,
            "train.epoch_count": float(second // 600),
            "train.step_s": 0.12 + 0.01 * noise,
            "train.wait_ratio": 0.05 * noise,
            "train.loss": 2.0 / (1 + second / 3600) + 0.1 * noise,
            "train.gradient_norm": 1.0 + noise,
        }
        return values | {f"other.signal{number}_ratio": noise for number in range(SIGNALS - len(values))}


def look(reader: RunReader) -> float:
    began = time.perf_counter()
    reader.read()
    return (time.perf_counter() - began) * 1000


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def drain(terminal: int) -> None:
    with contextlib.suppress(OSError):  # the other end is closed
        while os.read(terminal, 1 << 16):
            pass


def screen_share(run: Path, recorded: LongRun, settle_s: float) -> float:
    """Of a core, in a terminal of 80×24, while the run goes on, once the first verdict is made."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "holdfast", "top", str(run)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    threading.Thread(target=drain, args=(terminal,), daemon=True).start()
    before = after = 0.0
    for second in range(int(settle_s + WATCH_S)):
        time.sleep(1.0)
        recorded.second()
        before = cpu_s(pid) if second < settle_s else before
        after = cpu_s(pid)
    os.write(terminal, b"q")
    os.waitpid(pid, 0)
    return (after - before) / WATCH_S


def main() -> None:
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 24.0
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "runs" / "20260101-000000-long"
        recorded = LongRun(run, hours)
        for _ in range(int(hours * 3600)):
            recorded.second()
        reader = RunReader(run, any_alive)
        first, later = look(reader), []
        for _ in range(20):
            recorded.second()
            later.append(look(reader))
        began = time.perf_counter()
        judged(run)
        took_s = time.perf_counter() - began
        print(
            f"top, {hours:g} h with {SIGNALS} signals: first look {first:.0f} ms, each further one {median(later):.1f} ms"
        )
        print(
            f"top, the verdict: {took_s:.2f} s; the screen between two: {screen_share(run, recorded, 5 + 3 * took_s):.1%} of a core"
        )


if __name__ == "__main__":
    main()
