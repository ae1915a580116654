"""What every adapter must hold, whatever the framework.

A script under tests/scripts/ is written as people write them, counts by itself, and prints one JSON line at its end:

    {"steps": 120,              optimizer steps
     "epochs": 3,               passes over the data; null where nobody but the script can know
     "losses": [2.3, …],        losses[n - 1] is what the script itself saw at step n; null where it did not look
     "batch_shape": [32, 20],   the last training batch's inputs
     "wait_share": 0.5,         of the time from its first step to its last, the part spent waiting for data; or null
     "weights": "9f86…"}        a hash over the trained weights

Every other line it prints is the same on every run. Nothing in it mentions Holdfast. A test module runs each script
once bare, once with Holdfast, once per fault, and hands the results to the `check_…` functions below.
"""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal
from holdfast.vocabulary import Event, Sample

SCRIPTS = Path(__file__).parents[1] / "scripts"
FAULTS = Path(__file__).parent / "faults"
INSIDE = Path(__file__).parents[2] / "src" / "holdfast" / "inside"

# Where a fault is thrown: what a hook calls; every guarded function at once; all of it every third time; all of it.
# A test adds its adapter's own functions, as "keras.step.some_function" (a path below holdfast_inside).
COMMON_FAULTS = (
    "telemetry.Recorder.epoch",
    "telemetry.Recorder.phase",
    "telemetry.Recorder.waited",
    "telemetry.Recorder.batch",
    "telemetry.Recorder.step",
    "telemetry.Recorder.wants",
    "telemetry.Recorder.offer",
    "telemetry.Recorder.event",
    "guarded",
    "sometimes",
    "all",
)


@dataclass(frozen=True)
class Ran:
    report: dict[str, Any]
    exit_code: int
    stdout: str
    stderr: str
    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    faults_thrown: int = 0

    def values(self, name: str) -> list[float]:
        return [sample.value for sample in self.samples if sample.name == name and sample.value is not None]

    def at_steps(self, name: str) -> list[tuple[int, float]]:
        """A value that was read late, with the step it belongs to."""
        found = [sample for sample in self.samples if sample.name == name and sample.value is not None]
        return [(sample.step or 0, sample.value or 0.0) for sample in found]

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]

    @property
    def printed_before_report(self) -> list[str]:
        return self.stdout.splitlines()[:-1]


def run_script(  # noqa: PLR0917 - a launcher
    path: Path,
    place: Path,
    holdfast: bool = True,
    fault: str = "",
    options: Sequence[str] = (),
    env: dict[str, str] | None = None,
    timeout_s: float = 200.0,
    python: str = sys.executable,
) -> Ran:
    """Runs a script in a new folder below `place`, with or without Holdfast in front."""
    folder = place / f"{path.stem}-{'holdfast' if holdfast else 'bare'}-{fault or 'sound'}"
    folder.mkdir(parents=True)
    command = [python, str(path)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "HOLDFAST_DIR": str(folder / "state"), **(env or {})}
    thrown = folder / "faults"
    if fault:
        environment |= {"PYTHONPATH": str(FAULTS), "HOLDFAST_TEST_FAULT": fault, "HOLDFAST_TEST_THROWN": str(thrown)}
    if holdfast:
        command = [sys.executable, "-m", "holdfast", "run", *options, "--", *command]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    samples, events = _recorded(folder / "state") if holdfast else ([], [])
    return Ran(
        report=_report(done.stdout),
        exit_code=done.returncode,
        stdout=done.stdout,
        stderr=done.stderr,
        samples=samples,
        events=events,
        faults_thrown=len(thrown.read_text().splitlines()) if thrown.exists() else 0,
    )


def run_pair(path: Path, place: Path) -> tuple[Ran, Ran]:
    """Without Holdfast and with it, side by side: most of the time each of them imports, on one processor."""
    with ThreadPoolExecutor(2) as pool:
        bare, ran = pool.map(lambda holdfast: run_script(path, place, holdfast), (False, True))
    return bare, ran


def _report(stdout: str) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {}
    return report


def _recorded(state: Path) -> tuple[list[Sample], list[Event]]:
    (run,) = [path for path in (state / "runs").iterdir() if path.is_dir() and not path.is_symlink()]
    journal = Journal(run / "journal")
    return [s for s in journal.samples() if s.name.startswith("train")], journal.events()


# -- the checks: `bare` and `ran` are the same script without and with Holdfast


def check_sound(ran: Ran) -> None:
    """The adapter took over and nothing of ours failed on the way."""
    assert ran.exit_code == 0, ran.stderr
    assert ran.report, f"no report on stdout: {ran.stdout[-500:]}"
    assert ran.told("framework.loaded"), "no handshake"
    assert not ran.told("inside.failed")


def check_unchanged(bare: Ran, ran: Ran) -> None:
    """Exit code, output and every bit of the result are what they are without Holdfast."""
    assert (ran.exit_code, ran.printed_before_report) == (bare.exit_code, bare.printed_before_report)
    for exact in ("steps", "epochs", "losses", "batch_shape", "weights"):
        assert ran.report.get(exact) == bare.report.get(exact), exact


def check_steps(ran: Ran) -> None:
    assert ran.values("train.steps_count")[-1] == ran.report["steps"]
    assert ran.values("train.lost_records_count")[-1] == 0


def check_epochs(ran: Ran) -> None:
    if ran.report["epochs"] is None:
        assert not ran.values("train.epoch_count")
    else:
        assert ran.values("train.epoch_count")[-1] == ran.report["epochs"] - 1


def check_loss(ran: Ran, tolerance: float = 1e-6, at_least: int = 1) -> None:
    """Each loss is the script's own at the step it claims to be of."""
    seen = ran.at_steps("train.loss")
    assert len(seen) >= at_least, f"{len(seen)} losses"
    own = ran.report["losses"]
    both = [(step, loss, own[step - 1]) for step, loss in seen if own[step - 1] is not None]
    assert len(both) >= min(at_least, sum(loss is not None for loss in own)), "none at a step where the script looked"
    for step, loss, wanted in both:
        assert math.isclose(loss, wanted, rel_tol=tolerance, abs_tol=tolerance), f"step {step}: {loss}, not {wanted}"


def check_batch_shape(ran: Ran) -> None:
    """The last one that was seen; null where nobody but the script can know."""
    if ran.report["batch_shape"] is not None:
        assert ran.told("train.batch")[-1]["shape"] == ran.report["batch_shape"][:4]


def wait_share(ran: Ran) -> float:
    """Over the whole run: each sample weighs as much as the time it covers."""
    numbers = [0.0, *ran.values("train.steps_count")]
    lasted = [
        each_s * (after - before)
        for each_s, before, after in zip(ran.values("train.step_s"), numbers[:-1], numbers[1:], strict=True)
    ]
    waited = [share * s for share, s in zip(ran.values("train.wait_ratio"), lasted, strict=True)]
    return sum(waited) / sum(lasted)


def check_wait_share(ran: Ran, within: float = 0.1) -> None:
    if ran.report["wait_share"] is None:
        return
    share = wait_share(ran)
    assert abs(share - ran.report["wait_share"]) <= within, f"{share:.3f}, not {ran.report['wait_share']:.3f}"


def check_everything(bare: Ran, ran: Ran) -> None:
    check_sound(ran)
    check_unchanged(bare, ran)
    check_steps(ran)
    check_epochs(ran)
    check_loss(ran)
    check_batch_shape(ran)
    check_wait_share(ran)


def check_fault_stays_inside(bare: Ran, faulty: Ran, thrown: bool = True) -> None:
    """`faulty` ran with a fault; `thrown` says whether this one lies on the script's way at all."""
    if thrown:
        assert faulty.faults_thrown > 0, "the fault was never thrown: the test proves nothing"
    assert faulty.exit_code == bare.exit_code, faulty.stderr
    told = [line for line in (faulty.stdout + faulty.stderr).splitlines() if "thrown by a test" in line]
    assert len(told) <= 1 and all(line.startswith("holdfast: a part of Holdfast failed") for line in told), told
    check_unchanged(bare, faulty)


def faults(*names: str) -> list[Any]:
    """The broad ones in every run; one hook at a time with `pytest -m slow`, since each is a process of its own."""
    quick = ("guarded",)
    gone = [name for name in names if "." in name and not _is_a_place(name)]
    assert not gone, f"a fault in what is not there is never thrown: {gone}"
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


def _is_a_place(fault: str) -> bool:
    """`keras.step.Some.function`: folders and a file below `inside`, then names in it, as the source has them."""
    *path, last = fault.split(".")
    for depth in range(len(path), 0, -1):
        file = INSIDE.joinpath(*path[:depth]).with_suffix(".py")
        if file.exists():
            found: ast.AST = ast.parse(file.read_text())
            for name in [*path[depth:], last]:
                found = next((node for node in ast.walk(found) if getattr(node, "name", None) == name), ast.Pass())
            return not isinstance(found, ast.Pass)
    return False
