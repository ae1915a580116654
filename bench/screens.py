"""How long the page and the report take: python -m bench.screens [HOURS]

A run of so many hours (24 by default) with 100 signals a second is written by the journal's own writer, which thins it as it
would have; then it is opened in Chromium, and its report is made. Each figure is the best of three.
"""

from __future__ import annotations

import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.journal import JournalWriter
from holdfast.vocabulary import Event, Output, Sample

HOLDFAST = [sys.executable, "-m", "holdfast"]
START = 1_790_000_000.0
TRAINING = ("loss", "gradient_norm", "step_s", "wait_ratio", "steps_count", "rss_bytes")
OF_A_GPU = (
    "memory_used_bytes", "memory_total_bytes", "job_memory_bytes", "temperature_celsius", "power_watts", "utilisation_percent",
    "clock_mhz", "fan_percent", "throttle_flags", "ecc_count",
)  # fmt: skip
OTHERS = (
    "host.memory_available_bytes", "host.memory_total_bytes", "host.load_ratio", "host.swap_free_bytes", "job.rss_bytes", "job.held_bytes",
    "job.cpu_s", "job.cpu_wanting_count", "job.cores_count", "cgroup.memory_working_bytes", "cgroup.memory_limit_bytes",
    "pressure.memory_some_percent", "disk[/].free_bytes", "net.received_bytes",
)  # fmt: skip
SIGNALS = (*(f"train.{name}" for name in TRAINING), *OTHERS, *(f"gpu{i}.{name}" for i in range(8) for name in OF_A_GPU))
ENDING = b"""Traceback (most recent call last):
  File "/home/ada/train.py", line 51, in <module>
    loss = model(batch)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)
"""


class Clock:
    now = START

    def __call__(self) -> float:
        return self.now


def record(run: Path, hours: float, rng: random.Random) -> None:
    clock = Clock()
    writer, output = (JournalWriter(run / "journal", name, clock=clock) for name in ("watcher", "watcher-output"))
    about = {"command": ["python", "train.py", "--lr", "0.1"], "cwd": "/home/ada", "policy": "protect", "holdfast": "0"}
    writer.event(Event("run.start", START, about))
    for second in range(int(hours * 3600)):
        clock.now = START + second
        writer.samples(clock.now, [_sample(name, index, second, rng) for index, name in enumerate(SIGNALS)])
        if second % 10 == 0:
            output.output(Output("stdout", clock.now, f"step {second * 10}: loss {rng.random():.4f}\n".encode()))
        if second % 600 == 0:
            writer.event(Event("checkpoint.saved", clock.now, {"number": second // 600, "step": second * 10}))
        for one in (writer, output):
            one.tend(clock.now)
    output.output(Output("stderr", clock.now, ENDING))
    writer.event(Event("script.exit", clock.now, {"code": 1, "signal": None}))
    writer.event(Event("run.end", clock.now))
    for one in (writer, output):
        one.close()


def _sample(name: str, index: int, second: int, rng: random.Random) -> Sample:
    if name == "train.steps_count":
        value = second * 10.0
    elif name.endswith(("total_bytes", "limit_bytes", "cores_count")):
        value = 64e9
    elif name.endswith("_bytes"):
        value = 3e10 + 2e9 * math.sin(second / 3000 + index) + rng.random() * 1e7
    else:
        value = math.exp(-second / 3e4) + 0.1 * rng.random()
    return Sample(name, value, START + second, step=second * 10 if name.startswith("train.") else None)


def best(measure: Callable[[], float], rounds: int = 3) -> float:
    return min(measure() for _ in range(rounds))


def serve(directory: Path) -> tuple[subprocess.Popen[str], str]:
    command = [*HOLDFAST, "serve", "--port", "0", "--dir", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def opening(directory: Path, run: str) -> tuple[float, float]:
    """Seconds until the charts are drawn, of a server that has not read the run yet, and until the verdict is there."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    process, link = serve(directory)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(link)
            page.wait_for_selector("table.runs")
            began = time.monotonic()
            page.goto(f"{link.partition('/?')[0]}/run/{run}")
            page.wait_for_selector("body[data-drawn]")
            drawn = time.monotonic() - began
            page.wait_for_selector("body[data-judged]")
            judged = time.monotonic() - began
            browser.close()
    finally:
        process.terminate()
        process.wait()
    return drawn, judged


def reporting(directory: Path, run: str, page: Path) -> float:
    began = time.monotonic()
    command = [*HOLDFAST, "why", run, "--dir", str(directory), "--html", str(page)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def listing(directory: Path) -> float:
    import urllib.request  # noqa: PLC0415

    process, link = serve(directory)

    def ask() -> float:
        began = time.monotonic()
        with urllib.request.urlopen(link) as answer:
            assert answer.read().count(b"data-run=") == 50
        return time.monotonic() - began

    try:
        return best(ask)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 24.0
    with tempfile.TemporaryDirectory() as folder:
        long, many = Path(folder, "long"), Path(folder, "many")
        record(long / "runs" / "20261001-000000-long", hours, random.Random(1))
        size = sum(file.stat().st_size for file in long.rglob("*") if file.is_file()) / 1e6
        opened = [opening(long, "20261001-000000-long") for _ in range(3)]
        page = Path(folder, "why.html")
        made = best(lambda: reporting(long, "20261001-000000-long", page))
        print(
            f"screens, {hours:.0f} h of {len(SIGNALS)} signals a second ({size:.1f} MB): charts after {min(one[0] for one in opened):.2f} s, "
            f"verdict after {min(one[1] for one in opened):.2f} s, report in {made:.2f} s, {page.stat().st_size / 1e6:.1f} MB"
        )
        for number in range(50):
            record(many / "runs" / f"20261001-{number:06d}-many", 0.1, random.Random(number))
        print(f"screens, list of 50 runs: {listing(many):.3f} s")


if __name__ == "__main__":
    main()
