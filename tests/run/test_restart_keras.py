"""A real Keras training under `holdfast run`: killed, or preempted and resumed, it ends with the weights it would have had."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.inside import checkpoint_store
from tests.workplace import HOLDFAST, Workplace, wait_for

SCRIPT = Path(__file__).parents[1] / "scripts/resume_kinds.py"
ENVIRONMENT = {**os.environ, "EPOCHS": "16", "STEP_PAUSE_S": "0.01"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not hasattr(checkpoint_store, "write") or not SCRIPT.exists(), reason="Keras is not saved yet"),
]


def _told(out: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(out.decode().splitlines()[-1])
    return told


def _undisturbed(workplace: Workplace, kind: str) -> dict[str, Any]:
    words = [sys.executable, str(SCRIPT), kind]
    done = subprocess.run(words, cwd=workplace.path, env=ENVIRONMENT, capture_output=True, check=True)
    (workplace.path / "training").unlink()
    return _told(done.stdout)


def _training_for(workplace: Workplace, seconds: float) -> None:
    """The script makes a file of this name with its first step."""
    wait_for((workplace.path / "training").exists, seconds=90)
    time.sleep(seconds)
    (workplace.path / "training").unlink()


def test_killed_twice_it_ends_with_the_same_weights(workplace: Workplace) -> None:
    expected = _undisturbed(workplace, "arrays")
    process = workplace.start([sys.executable, str(SCRIPT), "arrays"], "--checkpoint", "1", env=ENVIRONMENT)
    for seconds in (3.0, 2.5):
        _training_for(workplace, seconds)
        workplace.script_of(process.pid).kill()
        time.sleep(0.5)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert _told(out) == expected
    assert err.count(b"starting again from step") == 2
    assert workplace.why()["outcome"] == "recovered"


def test_preempted_and_resumed_it_ends_with_the_same_weights(workplace: Workplace) -> None:
    expected = _undisturbed(workplace, "arrays")
    process = workplace.start([sys.executable, str(SCRIPT), "arrays"], env=ENVIRONMENT)
    _training_for(workplace, 3.0)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(30) == 143
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "terminated")
    words = [*HOLDFAST, *shlex.split(answer["resume"])[1:]]
    done = subprocess.run(words, cwd=workplace.path, env=ENVIRONMENT, capture_output=True, check=True)
    assert _told(done.stdout) == expected
    assert b"from step " in done.stderr
