"""`holdfast run python train.py` in a container that is too small for the batch: no option, nothing edited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal
from lab.case import Limits
from lab.oom import runs
from lab.stage import CannotStage, Stage

SCRIPT = Path(__file__).parents[1] / "scripts" / "oom_unforeseen.py"
MIB = 1 << 20
pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
]


@pytest.fixture(autouse=True)
def _containers() -> None:
    try:
        with Stage(Limits(memory=100 * MIB), f"try-{os.getpid()}"):
            pass
    except CannotStage as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("model", "times", "limit"), [("dense", 6, 720), ("lstm", 6, 640), ("transformer", 4, 680)])
def test_a_batch_that_does_not_fit_is_seen_and_trained_in_pieces(
    model: str, times: int, limit: int, tmp_path: Path
) -> None:
    alone = runs.train(tmp_path, model, times, container=limit * MIB)
    assert alone.exit == 137, "it fits: nothing is shown"
    run = runs.train(tmp_path, model, times, container=limit * MIB, options=())
    assert run.exit == 0
    assert run.how == "foreseen"
    assert (run.outcome, run.cause) == ("recovered", "container-memory-limit")
    whole = runs.train(tmp_path, model, times)
    if model != "transformer":  # which draws its dropout anew for each piece
        assert float(runs.apart(whole, run)) < 1e-5


def test_one_that_fits_at_nine_tenths_of_the_container_is_left_alone(tmp_path: Path) -> None:
    free = runs.train(tmp_path, "dense", 4, container=runs.PLENTY)
    assert free.peak is not None
    limit = int(free.peak / 0.9) + (48 << 20)
    run = runs.train(tmp_path, "dense", 4, container=limit, options=())
    assert run.exit == 0
    assert run.how == "not touched" and run.outcome == "completed"
    assert runs.same_bits(free, run)


def watched(place: Path, mib_a_row: int, limit: int) -> tuple[int, dict[str, Any], list[Any], dict[str, Any]]:
    environment = {**os.environ, "HOLDFAST_DIR": str(place / "state")}
    holdfast = [sys.executable, "-m", "holdfast"]
    command = [*holdfast, "run", "--checkpoint", "1", "--", sys.executable, str(SCRIPT), str(mib_a_row)]
    with Stage(Limits(memory=limit), f"oom-{os.getpid()}") as stage:
        done = subprocess.run(
            stage.wrap(command), cwd=place, env=environment, capture_output=True, timeout=400, check=False
        )
    told = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    run = max((place / "state" / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    why = subprocess.run([*holdfast, "why", "--json"], cwd=place, env=environment, capture_output=True, check=False)
    return done.returncode, told, Journal(run / "journal").events(), json.loads(why.stdout)


def test_one_that_was_killed_goes_on_from_its_checkpoint_in_pieces_half_as_large(tmp_path: Path) -> None:
    """What the layer takes is outside TensorFlow, so nothing foresees it; and the next run knows what fitted."""
    bare = subprocess.run([sys.executable, str(SCRIPT), "0"], capture_output=True, timeout=300, check=True)
    expected = json.loads(bare.stdout.splitlines()[-1])
    code, told, events, why = watched(tmp_path, 10, 760 * MIB)
    assert code == 0
    assert told["iterations"] == expected["iterations"] == 30
    assert told["weights"] == pytest.approx(expected["weights"], rel=1e-5)
    assert (why["outcome"], why["cause"]["id"]) == ("recovered", "container-memory-limit")
    decided = [
        event.data["text"] for event in events if event.kind == "decision" and "starting again" in event.data["text"]
    ]
    assert decided and all("starting again from step" in text for text in decided)
    tried = [int(text.split(" in ")[1].split(" micro")[0]) for text in decided]
    assert tried == sorted(set(tried)) and tried[0] == 2, "twice as many each time, never the same again"
    code, told, events, why = watched(tmp_path, 10, 760 * MIB)
    assert code == 0 and told["weights"] == pytest.approx(expected["weights"], rel=1e-5)
    assert not [event for event in events if event.kind == "attempt.exit"], "it began with what fitted"
