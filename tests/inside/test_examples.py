"""The examples run, and are seen as they say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.journal import Journal
from tests.workplace import Workplace, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("framework", ["torch", pytest.param("tensorflow", marks=pytest.mark.slow), "jax"])
def test_an_attached_loop_is_counted(workplace: Workplace, framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    example = EXAMPLES / f"loop_{framework}.py"
    done = subprocess.run([sys.executable, example], cwd=workplace.path, capture_output=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    wait_for(lambda: Journal(run / "journal").events("run.end"))
    seen = {sample.name: sample.value for sample in Journal(run / "journal").samples()}
    assert (seen.get("train.steps_count"), seen.get("train.epoch_count")) == (96, 2)
    assert Journal(run / "journal").events("train.batch")[-1].data["shape"] == [64, 20]
    assert workplace.why()["outcome"] == "completed"
