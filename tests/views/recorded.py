"""Runs for the tests of what is read from them, made with the journal's own writer."""

from __future__ import annotations

import os
import time
from math import nan
from pathlib import Path

from holdfast.journal import JournalWriter
from holdfast.supervisor.run_start import started_at
from holdfast.vocabulary import Event, Sample

COMMAND = ["python", "train.py", "--api-key", "s3cr3t", 'a "quoted" \\ word', "two\nlines"]
STEPS = 40
TOKEN = "hf_" + "a1B2c3D4e5" * 3
EVIDENCE = f"it <b>grows</b>\x1b[2J {TOKEN}"


class RecordedRun:
    """It goes on, as far as anybody can see: this very process is its script."""

    def __init__(self, state: Path, name: str, alive: bool = True) -> None:
        self.path = state / "runs" / f"20260101-000000-{name}"
        (self.path / "journal").mkdir(parents=True)
        self.writer = JournalWriter(self.path / "journal", "watcher")
        self.began = time.time() - STEPS
        started = started_at(os.getpid()) if alive else -1.0
        about = {"command": COMMAND, "policy": "protect", "script_pid": os.getpid(), "script_started": started}
        self.event("run.start", 0, **about)
        self.event("machine", 0, boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip())

    def event(self, kind: str, after_s: float, **data: object) -> None:
        self.writer.event(Event(kind, self.began + after_s, data))

    def steps(self, first: int = 1, last: int = STEPS) -> None:
        """One a second."""
        for step in range(first, last + 1):
            at = self.began + step
            samples = [
                Sample("train.steps_count", step, at),
                Sample("train.loss", nan if step == STEPS else 1 / step, at, step=step),
                Sample("train.gradient_norm", 0.5, at, step=step),
                Sample("train.step_s", 0.25, at),
                Sample("train.wait_ratio", 0.1, at),
                Sample("host.memory_total_bytes", 8e9, at),
                Sample("host.memory_available_bytes", 3e9, at),
                Sample("job.rss_bytes", 1e9, at),
                Sample("gpu0.memory_used_bytes", 2e9, at),
                Sample("gpu0.memory_total_bytes", 4e9, at),
                Sample("gpu0.utilisation_percent", 87.0, at),
                Sample("disk[/].free_bytes", None, at, "not readable"),
            ]
            self.writer.samples(at, samples)

    def findings(self) -> None:
        for after_s in (11, 12):
            about = {"cause": "memory-leak", "confidence": 0.9, "key": "leak", "evidence": [EVIDENCE]}
            self.event("finding", after_s, **about)
        self.event("decision", 12, decision="warn", key="leak", text=EVIDENCE)
        self.event("rescue.caught", 13, step=13, wanted="1 GiB")
        self.event("rescue.k", 13, k=4, where="train")
        self.event("attempt.start", 20, attempt=2, script_pid=os.getpid(), script_started=started_at(os.getpid()))

    def end(self, code: int = 0) -> None:
        self.event("script.exit", STEPS + 1, code=code, signal=None)
        self.event("run.end", STEPS + 1)
        self.writer.close()
