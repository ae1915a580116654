"""Runs for the page and the report: one that failed, with secrets and hostile text in what it printed, and one that finished."""

from __future__ import annotations

from math import nan
from pathlib import Path

from holdfast.journal import JournalWriter
from holdfast.vocabulary import Output, Sample
from tests.story import GIB
from tests.views.recorded_run import RecordedRun

SECRET = "hunter2hunter2"
HOSTILE = (
    b"x" * (1 << 20)
    + b"\n<script>window.pwned = 1</script><img src=x onerror='window.pwned=2'>\n"
    + b"\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07\n"
    + "\u202etxet desrever\u202c & <b>bold</b>\n".encode()
    + f"wandb: api_key = {SECRET}\n{{'password': '{SECRET}'}}\n".encode()
)
TRACEBACK = b"""Traceback (most recent call last):
  File "/home/ada/train.py", line 51, in <module>
    loss = model(batch)
ValueError: </pre><script>window.pwned = 3</script> expected 3 columns
"""
FAILED, FINISHED = "20261116-120000-failed", "20261116-130000-finished"


def prints(run: RecordedRun, stream: str, data: bytes) -> None:
    writer = JournalWriter(run.path / "journal", "watcher-output")
    writer.output(Output(stream, run.at, data))
    writer.close()


def failed_run(directory: Path, name: str = FAILED, seconds: int = 300) -> Path:
    run = RecordedRun(directory, name)
    run.event("machine", hostname="ada-box", cores=8, system="Linux", kernel="6.18", boot_id="then")
    run.event("framework.loaded", pid=1, name="torch", version="2.13.0")
    run.event("gpu.found", index=0, name="NVIDIA H200", driver="570", memory_total_bytes=139 * GIB)
    run.trains(seconds, job__rss_bytes=5 * GIB, gpu0__memory_used_bytes=70 * GIB, gpu0__memory_total_bytes=139 * GIB)
    run.decided("warn", "leak", "memory grows by 3 MiB a step <i>here</i>")
    run.seconds(1, train__loss=nan)
    run.event("hang.stacks", **standing_still(run.at))
    run.trains(30)
    prints(run, "stdout", HOSTILE)
    prints(run, "stderr", TRACEBACK)
    return run.ends(code=1)


def finished_run(directory: Path, name: str = FINISHED) -> Path:
    run = RecordedRun(directory, name)
    run.event("framework.loaded", pid=1, name="torch", version="2.12.0")
    run.trains(200, job__rss_bytes=4 * GIB)
    prints(run, "stdout", b"done\n")
    return run.ends()


def many_runs(directory: Path, count: int) -> None:
    for number in range(count):
        run = RecordedRun(directory, f"20261115-{number:06d}-many")
        run.trains(20)
        run.ends(code=number % 2)


def standing_still(at: float) -> dict[str, object]:
    frame = {"file": "/home/ada/train.py", "line": 7, "function": "<lambda>"}
    thread = {"tid": 1, "name": "main", "state": "S", "cpu_s": 1.0, "frames": [frame]}
    process = {
        "pid": 1,
        "parent": 0,
        "name": "python",
        "command": "python train.py",
        "state": "S",
        "cpu_s": 1.0,
        "started": 1,
    }
    snapshot = {"at": at, "took_s": 0.01, "processes": [{**process, "threads": [thread]}]}
    return {"silent_s": 12.0, "soon_s": 10.0, "late_s": 60.0, "phase": "train", "trainers": {}, "snapshot": snapshot}


def row(at: float, **values: float | None) -> list[Sample]:
    return [
        Sample(name.replace("__", "."), value, at, "" if value is not None else "missing")
        for name, value in values.items()
    ]
