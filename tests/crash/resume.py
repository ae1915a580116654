"""kill -9 of a training at seeded random instants, resumed each time: does it end as if nothing had happened?

Each attempt is a process of its own, which the bootstrap gets into; `kill_table` does the same for many more kinds, forked. A run is right when its final weights are those of the undisturbed run, bit for bit (or, where the script sets no seed,
when each sample was used once an epoch), when every attempt went on from the newest whole checkpoint there was, and when
what it repeated is no more than one interval of the killed attempt's own steps.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.inside import checkpoint_store
from tests.inside.attempts import KINDS, LOOPS, ON_OTHER_BACKENDS, SCRIPTS, TAPES, UNEDITED, Attempt, Run
from tests.workplace import wait_for

SEEDED = (
    "arrays", "tf_data", "tf_data_repeat", "py_dataset", "py_dataset_workers", "generator", "streamed", "two_fits", "two_models",
    "schedule", "keras_mixed_precision", "steps_per_execution", "steps_per_execution_repeat",
)  # fmt: skip
KERAS_JAX_KINDS = (
    "keras_jax_arrays",
    "keras_jax_dataset",
    "keras_jax_generator",
    "keras_jax_two_fits",
    "keras_jax_several",
)
KERAS_TORCH_KINDS = ("keras_torch_arrays", "keras_torch_loader", "keras_torch_dataset", "keras_torch_two_fits")
LIGHTNING_KINDS, HUGGING_FACE_KINDS = ("pl_plain",), ("hf_plain",)  # of what `kill_table` kills
LOOP_KINDS = ("torch_flat", "torch_nested", "torch_workers", "jax")
TAPE_KINDS = ("compiled", "on_batch")  # loops around tf.GradientTape, and of train_on_batch
TORCH_KINDS = (
    "plain", "accumulation", "mixed_precision", "gan", "schedulers", "own_sampler", "stream", "workers", "validation",
    "trainer_class", "progress_bar", "slices", "steps_of_a_cycle", "persistent_workers", "folds", "two_loaders",
)  # fmt: skip
UNSEEDED = ("unseeded_arrays", "unseeded_tf_data")
EXACT = ("weights", "record", "next", "uses", "history", "epochs", "batches", "iterations")
INTERVAL_S = 0.3
SLACK_S = 0.5  # a loaded machine starts the writing thread late
LARGE = {"WIDTH": "1024", "EPOCHS": "5"}
_references = threading.Lock()


@dataclass
class Outcome:
    kind: str
    seed: int
    kills: list[str] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    went_on: int = 0  # attempts that began at a checkpoint
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "; ".join(self.problems) or "right"
        told = f"killed {', '.join(self.kills)}; repeated {self.repeated} steps"
        return f"{self.seed:6}  {self.kind:19} {verdict:8} {told}"


def trial(
    kind: str,
    seed: int,
    kills: int,
    aim: str = "",
    place: Path | None = None,
    *,
    slack_s: float = SLACK_S,
    python: str = sys.executable,
) -> Outcome:
    """One run, killed `kills` times, then left to end."""
    chance = random.Random(f"{kind} {seed}")
    outcome = Outcome(kind, seed)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-resume-", dir=place))
    try:
        run = Run(folder, [str(script_of(kind)), kind], INTERVAL_S, python)
        run.env = LARGE if aim == "save" else {}
        for _ in range(kills):
            attempt = run.start()
            before = checkpoint_store.newest(str(run.checkpoints))
            if attempt.wait_for_training():
                outcome.kills.append(_kill(attempt, run, chance, aim))
            attempt.finish()
            _check_went_on(outcome, attempt, before)
            if attempt.process.returncode == 0:
                break  # done before its turn came
            _note_repeated(outcome, run, attempt, slack_s)
        last = run.attempts[-1]
        if last.process.returncode != 0:
            before = checkpoint_store.newest(str(run.checkpoints))
            last = run.start()
            last.finish()
            _check_went_on(outcome, last, before)
        _check_end(outcome, last, undisturbed(kind, aim, python))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _kill(attempt: Attempt, run: Run, chance: random.Random, aim: str) -> str:
    if aim == "saved":
        wait_for(lambda: checkpoint_store.numbers(str(run.checkpoints)) or attempt.process.poll() is not None)
    if aim != "save":
        instant = chance.uniform(0.0, 3.0 if not aim else 1.0)
        time.sleep(instant)
        attempt.process.kill()
        return f"after {instant:.2f} s"
    saves_to_pass, offset = chance.randrange(0, 5), chance.uniform(0.0, 0.06)
    until, passed, inside = time.monotonic() + 20.0, 0, False
    while attempt.process.poll() is None and time.monotonic() < until:
        saving = any(name.startswith(".saving-") for name in _names(run.checkpoints))
        passed += saving and not inside
        inside = saving
        if passed > saves_to_pass:
            time.sleep(offset)
            there = any(name.startswith((".saving-", ".removing-")) for name in _names(run.checkpoints))
            attempt.process.kill()
            return f"{offset * 1000:.0f} ms into save {passed}{'' if there else ' (just over)'}"
    return "never"


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - a thousand times a second
    except OSError:
        return []


def _check_went_on(outcome: Outcome, attempt: Attempt, before: dict[str, Any] | None) -> None:
    """From the newest whole checkpoint, if it came so far as to train."""
    for event in attempt.events("checkpoint.mismatch", "inside.failed"):
        outcome.problems.append(f"{event['kind']}: {event.get('reason')}")
    restored = attempt.events("checkpoint.restored")
    outcome.went_on += bool(restored)
    if before is None or not attempt.steps():
        return
    if not restored:
        outcome.problems.append(f"began from zero although checkpoint {before['number']} was there")
    elif restored[0]["number"] != before["number"]:
        outcome.problems.append(f"went on from {restored[0]['number']}, not from {before['number']}")


def _note_repeated(outcome: Outcome, run: Run, killed: Attempt, slack_s: float) -> None:
    """By the killed attempt's own counter: how many steps it made beyond what can be gone on from."""
    steps, newest = killed.steps(), checkpoint_store.newest(str(run.checkpoints))
    if not steps:
        return
    if newest is None:
        if steps[-1][0] - steps[0][0] > INTERVAL_S + slack_s:
            outcome.problems.append("trained for longer than an interval and left no checkpoint")
        return
    beyond = [at for at, number in steps if number > int(newest["step"])]
    outcome.repeated.append(len(beyond))
    writes = [float(event["seconds"]) for event in killed.events("checkpoint.saved")]
    allowed = INTERVAL_S + 2 * max(writes, default=0.0) + slack_s
    if beyond and beyond[-1] - beyond[0] > allowed:
        outcome.problems.append(f"{beyond[-1] - beyond[0]:.2f} s of steps to repeat, {allowed:.2f} s allowed")


def _check_end(outcome: Outcome, last: Attempt, expected: dict[str, Any]) -> None:
    if last.process.returncode != 0:
        outcome.problems.append(f"ended with {last.process.returncode}: {last.err[-300:]}")
        return
    report = last.report()
    if outcome.kind in UNSEEDED:
        if report["uses"] != expected["uses"] or report["iterations"] != expected["iterations"]:
            outcome.problems.append(f"samples were used {report['uses']} times")
        return
    outcome.problems += [f"{key} differ" for key in EXACT if report.get(key) != expected.get(key)]


def script_of(kind: str) -> Path:
    scripts = {
        TORCH_KINDS: UNEDITED,
        LOOP_KINDS: LOOPS,
        (*KERAS_TORCH_KINDS, *KERAS_JAX_KINDS): ON_OTHER_BACKENDS,
        TAPE_KINDS: TAPES,
    }
    scripts |= {
        LIGHTNING_KINDS: SCRIPTS / "resume_lightning.py",
        HUGGING_FACE_KINDS: SCRIPTS / "resume_hf.py",
    }
    return next((script for kinds, script in scripts.items() if kind in kinds), KINDS)


def undisturbed(kind: str, aim: str, python: str = sys.executable) -> dict[str, Any]:
    with _references:
        return _undisturbed(kind, aim, python)


@functools.cache
def _undisturbed(kind: str, aim: str, python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="holdfast-resume-") as folder:
        run = Run(Path(folder), [str(script_of(kind)), kind], python=python)
        run.env = LARGE if aim == "save" else {}
        report = run.bare().report()
        assert report, f"{kind} does not run by itself"
        return report
