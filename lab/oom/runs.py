"""One training of a script: bare or under Holdfast, with a budget, in a container, or with all there is."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from holdfast.journal import Journal
from lab.case import Limits
from lab.stage import Stage

SCRIPT = Path(__file__).with_name("train.py")
PATIENCE_S = 600.0
ENDING_S = 15.0
SIGNALLED = 128  # and the signal's number, as a shell has it
OVERTIME = 124  # the exit code of what ran past its time, as `timeout` has it
PLENTY = 12 << 30
_BEGUN_WITH = re.compile(r"in (\d+) micro-batches")
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Run:
    exit: int
    result: Path
    events: list[tuple[str, dict[str, Any]]]
    outcome: str  # as `why` says
    cause: str
    output: str
    peak: int | None
    errors: str = ""

    @property
    def restarts(self) -> int:
        return [kind for kind, _ in self.events].count("attempt.exit")

    @property
    def how(self) -> str:
        kinds = [kind for kind, _ in self.events]
        words = [f"restarted {self.restarts}"] if self.restarts else []
        words += ["foreseen"] if "rescue.foreseen" in kinds else []
        words += [f"caught {kinds.count('rescue.caught')}"] if "rescue.caught" in kinds else []
        words += ["refused"] if "rescue.refused" in kinds else []
        return ", ".join(words) or "not touched"

    @property
    def k(self) -> int:
        return max([int(d["k"]) for kind, d in self.events if kind == "rescue.k" and d["where"] == "train"], default=1)

    def held_at_most(self) -> int:
        """By the process that finished, pages of mapped files left out; 0 where none did."""
        return int(np.load(self.result)["held_at_most"]) if self.result.exists() else 0

    def seconds(self) -> float:
        return float(np.load(self.result)["seconds"])


def train(
    place: Path, model: str, times: int = 1, *, container: int | None = None, options: tuple[str, ...] | None = None,
    measure: bool = False, state: str = "",
) -> Run:  # fmt: skip
    """`options` are Holdfast's; None: without it. Each run is the first of its script, unless it shares a `state`."""
    result = place / f"{next(_NUMBERS)}.npz"
    more = {"LAB_MEASURE": "1"} if measure else {}
    words = [str(SCRIPT), model, str(result), str(times)]
    return run(words, result, container=container, options=options, more=more, state=state)


def run(
    words: list[str], result: Path, *, container: int | None = None, options: tuple[str, ...] | None = None,
    more: dict[str, str] | None = None, state: str = "", patience: float = PATIENCE_S,
) -> Run:  # fmt: skip
    """A Python script with its arguments, which leaves what it found at `result`. All it starts is in the container."""
    place = result.parent
    folder = state or f"state-{result.stem}"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "HOLDFAST_DIR": str(place / folder), **(more or {})}
    command = [sys.executable, *words]
    if options is not None:
        command = [sys.executable, "-m", "holdfast", "run", *options, "--", *command]
    with Stage(Limits(memory=container), f"lab-oom-{os.getpid()}-{result.stem}") as stage:
        code, output, errors = finish(stage.wrap(command), environment, place, patience)
        peak = stage.memory_peak() if container else None
    events, outcome, cause = _record(place / folder, environment) if options is not None else ([], "", "")
    return Run(code, result, events, outcome, cause, output, peak, errors)


def finish(command: list[str], environment: dict[str, str], place: Path, patience: float) -> tuple[int, str, str]:
    """Its exit code and what it printed. One that takes too long is asked to end, and then ended with all it started."""
    process = subprocess.Popen(
        command, env=environment, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        output, errors = end(process)
        return OVERTIME, output, f"{errors}\nstopped: it took more than {patience:.0f} s"
    except BaseException:  # Ctrl-C: nothing is left behind
        end(process)
        raise
    code = process.returncode
    return (code if code >= 0 else SIGNALLED - code), output, errors


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it had printed."""
    everything: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        itself = psutil.Process(process.pid)
        everything = [*itself.children(recursive=True), itself]
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=ENDING_S)
    for one in everything:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    return process.communicate()


def _record(state: Path, environment: dict[str, str]) -> tuple[list[tuple[str, dict[str, Any]]], str, str]:
    kept = state / "runs"
    newest = max(kept.iterdir(), key=lambda path: path.stat().st_mtime) if kept.is_dir() else None
    if newest is None:
        return [], "no record", ""
    told = told_by_why(environment)
    events = [(event.kind, dict(event.data)) for event in Journal(newest / "journal").events()]
    return events, str(told.get("outcome", "no answer")), str((told.get("cause") or {}).get("id", ""))


def told_by_why(environment: dict[str, str]) -> dict[str, Any]:
    """What `why` says of the latest run; nothing where it has no answer."""
    why = subprocess.run(
        [sys.executable, "-m", "holdfast", "why", "--json"],
        env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    with suppress(ValueError):
        return dict(json.loads(why.stdout))
    return {}


def begun_with(decisions: Iterable[str]) -> int:
    """The most pieces a restart began with, also where it never got through a step with them."""
    return max((int(found[1]) for text in decisions if (found := _BEGUN_WITH.search(text))), default=1)


def apart(whole: Run, other: Run) -> str:
    if not other.result.exists():
        return "-"
    a, b = np.load(whole.result), np.load(other.result)
    if int(a["iterations"]) != int(b["iterations"]):
        return "steps!"
    return f"{np.linalg.norm(a['weights'] - b['weights']) / np.linalg.norm(a['weights']):.1e}"


def same_bits(one: Run, other: Run) -> bool:
    a, b = np.load(one.result), np.load(other.result)
    return all(a[name].tobytes() == b[name].tobytes() for name in ("weights", "iterations", "loss"))
