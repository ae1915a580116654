"""Runs that were recorded by an earlier Holdfast, whose modules had other names: they are explained and continued today.

`tests/data/recorded-before/README.md` says how they came to be. Nothing in them is ever made anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parents[1] / "data" / "recorded-before"
HOLDFAST = [sys.executable, "-m", "holdfast"]
LAST_SAVED = 116  # the step of the newest checkpoint in `killed`, of 200
needs_keras = pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras and TensorFlow")


def _laid_out(name: str, place: Path) -> str:
    """As it lay in its working directory. Answers with the run's name."""
    shutil.copytree(RECORDED / name / "state", place / ".holdfast")
    shutil.copy(RECORDED / name / "train.py", place)
    (run,) = (place / ".holdfast" / "runs").iterdir()
    return run.name


def _finished(command: list[str], place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **more}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    return done


def _why(place: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [*HOLDFAST, "why", "--json", *words], cwd=place, capture_output=True, check=False, timeout=100
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("name", ["killed", "exception", "rescued", "leak"])
def test_why_gives_the_answer_it_gave_then(name: str, tmp_path: Path) -> None:
    then = json.loads((RECORDED / name / "why.json").read_text())
    run = _laid_out(name, tmp_path)
    now = _why(tmp_path)
    assert now["run"] == run == then["run"]
    assert now["outcome"] == then["outcome"]
    assert (now["cause"] or {}).get("id") == (then["cause"] or {}).get("id")
    assert now["actions"] == then["actions"]


def test_the_four_are_four_kinds() -> None:
    """A killed fit, a bug, a rescue, and a leak in a run that ended well: no two have the same answer."""
    told = [json.loads(path.read_text()) for path in sorted(RECORDED.glob("*/why.json"))]
    assert [(one["outcome"], (one["cause"] or {}).get("id")) for one in told] == [
        ("failed", "unhandled-exception"), ("failed", "killed"), ("completed", None), ("recovered", "host-memory-exhausted"),
    ]  # fmt: skip
    assert any("held by train.kept" in action["decision"] for action in told[2]["actions"])


@needs_keras
@pytest.mark.timeout(600)
def test_a_fit_goes_on_from_its_old_checkpoint_to_the_weights_of_one_that_was_never_killed(tmp_path: Path) -> None:
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    whole.mkdir(), resumed.mkdir()
    shutil.copy(RECORDED / "killed" / "train.py", whole)
    expected = json.loads(_finished([sys.executable, "train.py"], whole).stdout)
    run = _laid_out("killed", resumed)
    done = _finished([*HOLDFAST, "run", f"--resume={run}", "--", sys.executable, "train.py"], resumed)
    assert f"resuming {run} from step {LAST_SAVED}" in done.stderr
    found = json.loads(done.stdout)
    assert found["iterations"] == expected["iterations"] == 200
    uses = [weight for weight in found["weights"] if len(weight) == 400]
    assert uses == [[4.0] * 400], "each sample once an epoch"
    for one, other in zip(found["weights"], expected["weights"], strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)  # the first part was computed on another processor
    assert found["weights"] and _why(resumed)["outcome"] == "completed"


@needs_keras
@pytest.mark.root
@pytest.mark.parametrize(
    ("edited", "k"),
    [
        pytest.param(False, 2, id="the same script"),
        pytest.param(True, None, id="an edited one", marks=pytest.mark.slow),
    ],
)
def test_micro_batches_that_were_learned_are_used(edited: bool, k: int | None, tmp_path: Path) -> None:
    """In the folder, by the words and on a machine of the name that they were learned with."""
    recorded = _laid_out("rescued", tmp_path)
    if edited:
        with (tmp_path / "train.py").open("a") as script:
            script.write("# another one\n")
    run = "hostname recorded && mount --bind . /mnt && cd /mnt && exec python -m holdfast run --memory 1000M -- python train.py"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = _finished(["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", run], tmp_path, PATH=path)
    assert json.loads(done.stdout)["iterations"] == 4
    (new,) = (one for one in (tmp_path / ".holdfast" / "runs").iterdir() if one.name != recorded)
    settings = json.loads((new / "inside" / "settings.json").read_text())
    assert settings["rescue"]["k"] == k
