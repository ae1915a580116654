"""A memory cgroup of its own in which a job runs under Holdfast, beside a neighbour that must not suffer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.journal import Journal
from holdfast.vocabulary import Event
from lab.case import Limits
from lab.stage import Stage
from tests.staging import staged
from tests.workplace import HOLDFAST, Workplace

MB = 1 << 20
WITH_NVML_MIB = 45  # the watcher's own, in the same container: beside an NVIDIA driver it is that much larger
ASIDE = "aside"
GROUP = f"holdfast-{os.getpid()}-guard"
NEIGHBOUR = [sys.executable, str(Path(__file__).parents[2] / "bench" / "programs" / "neighbour.py")]


@dataclass
class Result:
    code: int
    said: str
    printed: str
    seconds: float
    events: list[Event]
    neighbour: dict[str, Any] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @property
    def rungs(self) -> list[str]:
        """In the order they were climbed."""
        return [str(event.data.get("do") or event.kind.removeprefix("guard.")) for event in self.of(*CLIMBED)]


CLIMBED = ("guard.warn", "guard.ask", "guard.held", "guard.stopped")


def run_in_arena(
    workplace: Workplace,
    source: str,
    *options: str,
    memory: int,
    neighbour_mib: int = 0,
    timeout: float = 250,
    as_user: int = 0,
    beside: Sequence[str] = (),
) -> Result:
    script = workplace.script(source)
    command = [*HOLDFAST, "run", *options, "--", *(["sh", "-c", f"exec {' '.join(script)}"] if as_user else script)]
    if as_user:
        workplace.path.chmod(0o777)
        # May read everything, since the Python here may be in somebody's home; may write and signal what is its own.
        reading = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
        user = [f"--reuid={as_user}", f"--regid={as_user}", "--clear-groups", *reading]
        command = ["setpriv", *user, *command]
    memory += WITH_NVML_MIB if Path("/dev/nvidiactl").exists() else 0
    with staged(Limits(memory=memory * MB), f"guard-{workplace.path.name}") as stage:
        aside = _aside(stage)
        neighbour = None
        if neighbour_mib:
            neighbour = subprocess.Popen(
                stage.wrap([*aside, *NEIGHBOUR, str(timeout), str(neighbour_mib)]), stdout=subprocess.PIPE, text=True
            )
            assert neighbour.stdout is not None and neighbour.stdout.readline() == "ready\n"
        began = time.monotonic()
        other = subprocess.Popen(stage.wrap([*aside, *beside])) if beside else None
        done = subprocess.run(
            stage.wrap(command), cwd=workplace.path, capture_output=True, timeout=timeout, check=False
        )
        seconds = time.monotonic() - began
        if other is not None:
            other.wait(timeout=timeout)
        figures: dict[str, Any] = {}
        if neighbour is not None:
            alive = neighbour.poll() is None
            neighbour.terminate()
            told, _ = neighbour.communicate(timeout=timeout)
            figures = {**json.loads(told.splitlines()[-1] if alive else "{}"), "lived": alive}
        if aside:
            (stage.groups[0] / ASIDE).rmdir()
    run = max((workplace.path / ".holdfast" / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    events = Journal(run / "journal").events()
    return Result(done.returncode, done.stderr.decode(), done.stdout.decode(), seconds, events, figures)


def _aside(stage: Stage) -> list[str]:
    """In version 2 others stand in a group beside ours: one that holds them may hand no memory down to the job's own."""
    group = stage.groups[0]
    if not (group / "memory.max").exists():
        return []
    (group / ASIDE).mkdir()
    return ["sh", "-c", f'echo 0 > "{group / ASIDE}/cgroup.procs"; exec "$@"', "aside"]
