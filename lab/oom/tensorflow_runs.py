"""One training of `gpu_tensorflow.py`: what it printed, what Holdfast recorded of it, and when its steps began and ended."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from holdfast.journal import Journal
from holdfast.vocabulary import Event
from lab.oom.runs import OVERTIME, begun_with, end, finish, told_by_why
from lab.oom.tensorflow_cases import Ended

SCRIPT = Path(__file__).with_name("gpu_tensorflow.py")
HOW_MANY_LINES = 12
LOOK_S = 0.02
TROUBLE = ("rescue.caught", "rescue.foreseen", "rescue.k", "rescue.refused", "attempt.exit")
_NUMBERS = itertools.count(1)


class Step(NamedTuple):
    what: str  # begin, end
    step: int | str
    at: float
    pid: int


@dataclass(frozen=True)
class Trained:
    exit: int
    result: Path
    state: Path
    steps: list[Step]
    output: str
    errors: str
    events: list[Event] = field(default_factory=list)
    why: dict[str, Any] = field(default_factory=dict)
    signalled_at: int | str | None = None
    signal_time: float = 0.0

    @property
    def peak(self) -> int | None:
        found = self._printed().get("peak")
        return int(found) if found is not None else None

    @property
    def how(self) -> str:
        kinds = [event.kind for event in self.events]
        restarts, caught = kinds.count("attempt.exit"), kinds.count("rescue.caught")
        reasons = {str(event.data.get("reason")) for event in self.events if event.kind == "rescue.refused"}
        words = ["foreseen"] if "rescue.foreseen" in kinds else []
        words += [f"caught {caught}"] if caught else []
        words += [f"restarted {restarts}"] if restarts else []
        words += [f"refused: {reason}" for reason in sorted(reasons)]
        halved = int(self._printed().get("halved", 0))
        words += [f"the script halved its batch {halved} times"] if halved else []
        return ", ".join(words) or "not touched"

    @property
    def k(self) -> int:
        decisions = [str(event.data.get("text")) for event in self.events if event.kind == "decision"]
        within = [int(event.data["k"]) for event in self.events if event.kind == "rescue.k"]
        return max([begun_with(decisions), *within])

    @property
    def seconds_lost(self) -> str:
        lost = seconds_lost(self.steps, [event.at for event in self.events if event.kind in TROUBLE])
        return "-" if lost is None else f"{lost:.1f}"

    @property
    def outcome(self) -> str:
        return str(self.why.get("outcome", ""))

    @property
    def cause(self) -> str:
        return str((self.why.get("cause") or {}).get("id", ""))

    @property
    def verdict(self) -> str:
        confidence = (self.why.get("cause") or {}).get("confidence")
        sure = f", {confidence:.2f}" if isinstance(confidence, float) else ""
        return f"{self.outcome}, {self.cause or 'no cause'}{sure}" if self.why else "no answer"

    @property
    def saved_by_signal(self) -> bool:
        return any(event.kind == "checkpoint.saved" and event.at >= self.signal_time for event in self.events)

    @property
    def last_line(self) -> str:
        return (self.last_lines(1) or [""])[0]

    def last_lines(self, count: int) -> list[str]:
        return [line.rstrip()[:200] for line in self.errors.splitlines() if line.strip()][-count:]

    def forget(self) -> None:
        """The weights of all cases together are more than some disks hold."""
        self.result.unlink(missing_ok=True)

    def _printed(self) -> dict[str, Any]:
        lines = [line for line in self.output.splitlines() if line.startswith("{")]
        with suppress(ValueError):
            return dict(json.loads(lines[-1])) if lines else {}
        return {}


def seconds_lost(steps: list[Step], troubles: list[float]) -> float | None:
    """From the beginning of the step that the first trouble fell into to the end of the next one that finished."""
    if not troubles:
        return None
    first = min(troubles)
    began = max((one.at for one in steps if one.what == "begin" and one.at <= first), default=None)
    if began is None:
        return None
    ended = min((one.at for one in steps if one.what == "end" and one.at > began), default=None)
    return None if ended is None else ended - began


def train(
    place: Path, name: str, variant: str, card: list[str], *, options: tuple[str, ...] | None, patience: float,
    resumes: Trained | None = None,
) -> Trained:  # fmt: skip
    """`options` are Holdfast's; None: without it. One that `resumes` another is the same command with its record."""
    files = resumes.result.parent if resumes else _folder(place, name)
    command, environment = _command(files, variant, card, options)
    before = len(_steps(files))
    code, output, errors = finish(command, environment, files, patience)
    return _trained(files, (code, output, errors), _steps(files)[before:], environment, options is not None)


def train_until(place: Path, case: Ended, card: list[str], patience: float) -> Trained:
    """Under Holdfast; at the step the signal is sent: SIGKILL to the training process, any other to Holdfast."""
    files = _folder(place, case.name)
    command, environment = _command(files, "steady", card, case.options)
    output, errors = files / "output", files / "errors"
    with output.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen(
            command, env=environment, cwd=files, stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True
        )
        deadline = time.monotonic() + patience
        hit = _wait_for_step(files, case.at_step, process, deadline)
        sent = time.time()
        if hit is not None:
            os.kill(hit.pid if case.signal == "SIGKILL" else process.pid, getattr(signal, case.signal))
        try:
            code = process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            end(process)
            code = OVERTIME
    trained = _trained(files, (code, output.read_text(), errors.read_text()), _steps(files), environment, True)
    return Trained(**{**trained.__dict__, "signalled_at": hit.step if hit else None, "signal_time": sent})


def resumed_step(trained: Trained) -> int | None:
    """Where the last process of the run began; None where it began at the beginning, or there was but one attempt."""
    began = [one for one in trained.steps if one.what == "begin" and isinstance(one.step, int)]
    if not began:
        return None
    last = [one.step for one in began if one.pid == began[-1].pid]
    goes_on = isinstance(last[0], int) and last == list(range(last[0], last[0] + len(last)))
    return last[0] if goes_on and isinstance(last[0], int) and last[0] > 0 else None


def apart(whole: Trained | None, other: Trained) -> float | None:
    if whole is None or other.exit or not other.result.exists():
        return None
    mine, found = np.load(whole.result).astype("float64"), np.load(other.result).astype("float64")
    if mine.tobytes() == found.tobytes():
        return 0.0
    return float(np.linalg.norm(mine - found) / np.linalg.norm(mine)) if mine.shape == found.shape else float("inf")


def _folder(place: Path, name: str) -> Path:
    files = place / f"{next(_NUMBERS)}-{name}"
    files.mkdir()
    return files


def _command(
    files: Path, variant: str, card: list[str], options: tuple[str, ...] | None
) -> tuple[list[str], dict[str, str]]:
    words = [sys.executable, str(SCRIPT), variant, str(files / "result.npy"), str(files / "steps.jsonl"), *card]
    if options is not None:
        words = [sys.executable, "-m", "holdfast", "run", *options, "--", *words]
    return words, {**os.environ, "HOLDFAST_DIR": str(files / "state")}


def _trained(
    files: Path, ended: tuple[int, str, str], steps: list[Step], environment: dict[str, str], recorded: bool
) -> Trained:
    events, why = _record(files / "state", environment) if recorded else ([], {})
    return Trained(ended[0], files / "result.npy", files / "state", steps, ended[1], ended[2], events, why)


def _record(state: Path, environment: dict[str, str]) -> tuple[list[Event], dict[str, Any]]:
    kept = state / "runs"
    newest = max(kept.iterdir(), key=lambda path: path.stat().st_mtime, default=None) if kept.is_dir() else None
    if newest is None:
        return [], {}
    return list(Journal(newest / "journal").events()), told_by_why(environment)


def _steps(files: Path) -> list[Step]:
    written = files / "steps.jsonl"
    lines = written.read_text().splitlines() if written.exists() else []
    found = []
    for line in lines:
        with suppress(ValueError):  # torn by a kill
            found.append(Step(**json.loads(line)))
    return found


def _wait_for_step(files: Path, at_step: int, process: subprocess.Popen[str], deadline: float) -> Step | None:
    while process.poll() is None and time.monotonic() < deadline:
        for one in reversed(_steps(files)):
            if one.what == "begin" and isinstance(one.step, int) and one.step >= at_step:
                return one
        time.sleep(LOOK_S)
    return None
