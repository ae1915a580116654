"""One training of `train.py`: bare or under Holdfast, with a budget, in a container, or with all there is."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.journal import Journal
from lab.case import Limits
from lab.stage import Stage

SCRIPT = Path(__file__).with_name("train.py")
PATIENCE_S = 600.0
PLENTY = 12 << 30
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

    @property
    def how(self) -> str:
        kinds = [kind for kind, _ in self.events]
        restarts = kinds.count("attempt.exit")
        words = [f"restarted {restarts}"] if restarts else []
        words += ["foreseen"] if "rescue.foreseen" in kinds else []
        words += [f"caught {kinds.count('rescue.caught')}"] if "rescue.caught" in kinds else []
        words += ["refused"] if "rescue.refused" in kinds else []
        return ", ".join(words) or "not touched"

    @property
    def k(self) -> int:
        return max([int(d["k"]) for kind, d in self.events if kind == "rescue.k" and d["where"] == "train"], default=1)

    def seconds(self) -> float:
        return float(np.load(self.result)["seconds"])


def train(
    place: Path, model: str, times: int = 1, *, container: int | None = None, options: tuple[str, ...] | None = None,
    measure: bool = False, state: str = "",
) -> Run:  # fmt: skip
    """`options` are Holdfast's; None: without it. Each run is the first of its script, unless it shares a `state`."""
    number = next(_NUMBERS)
    result = place / f"{number}.npz"
    more = {"LAB_MEASURE": "1"} if measure else {}
    folder = state or f"state-{number}"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "HOLDFAST_DIR": str(place / folder), **more}
    command = [sys.executable, str(SCRIPT), model, str(result), str(times)]
    if options is not None:
        command = [sys.executable, "-m", "holdfast", "run", *options, "--", *command]
    with Stage(Limits(memory=container), f"lab-oom-{os.getpid()}-{number}") as stage:
        done = subprocess.run(
            stage.wrap(command), env=environment, cwd=place, capture_output=True, text=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
        peak = stage.memory_peak() if container else None
    events, outcome, cause = _record(place / folder, environment) if options is not None else ([], "", "")
    return Run(done.returncode, result, events, outcome, cause, done.stdout, peak)


def _record(state: Path, environment: dict[str, str]) -> tuple[list[tuple[str, dict[str, Any]]], str, str]:
    newest = max((state / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    why = subprocess.run(
        [sys.executable, "-m", "holdfast", "why", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(why.stdout)
    events = [(event.kind, event.data) for event in Journal(newest / "journal").events()]
    return events, str(told["outcome"]), str((told.get("cause") or {}).get("id", ""))


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
