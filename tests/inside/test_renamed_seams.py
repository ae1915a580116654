"""A framework in which a private name is called otherwise: training goes on, and what is lost is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.inside import checkpoint_store
from tests.inside.contract import SCRIPTS
from tests.inside.renamed_seams import KERAS, RENAMES, cases, verdict

needs_keras = pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras and TensorFlow")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        pytest.param("EpochIterator._steps_seen", "no checkpoint, no resume", marks=[needs_keras, pytest.mark.slow]),
        pytest.param("Layer._flatten_layers", "no rescue", marks=[needs_keras, pytest.mark.slow]),
        pytest.param(
            "dataset_ops.DatasetV2.__iter__", "no checkpoint, no resume", marks=[needs_keras, pytest.mark.slow]
        ),
        pytest.param("_BaseDataLoaderIter.__next__", "no telemetry, no checkpoint, no resume", marks=needs_torch),
        pytest.param("Module._forward_pre_hooks", "no rescue", marks=[needs_torch, pytest.mark.slow]),
    ],
)
def test_training_goes_on_and_what_is_lost_is_said(name: str, lost: str, tmp_path: Path) -> None:
    (case,) = [case for case in cases() if str(case.seam).endswith(name)]
    assert verdict(case, tmp_path) == f"ok: {lost}"


@needs_keras
def test_a_resume_that_cannot_put_the_state_back_ends_before_it_trains(tmp_path: Path) -> None:
    checkpoints, channel = tmp_path / "checkpoints", tmp_path / "channel"
    kept = checkpoint_store.write(str(checkpoints), {"framework": "keras", "step": 3, "fit": 0}, _fill)
    settings = {"policy": "protect", "checkpoint": {"directory": str(checkpoints), "resume": True}}
    channel.mkdir()
    (channel / "settings.json").write_text(json.dumps(settings))
    bootstrap = Path(checkpoint_store.__file__).parent / "bootstrap"
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "HOLDFAST_TEST_RENAME": "keras:_steps_seen",
        "HOLDFAST_CHANNEL": str(channel),
        "PYTHONPATH": f"{bootstrap}{os.pathsep}{RENAMES}",
    }
    script = [sys.executable, str(SCRIPTS / KERAS)]
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == checkpoint_store.MISMATCH_EXIT, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("holdfast: ")]
    assert "cannot be put back here" in said and "_steps_seen" in said
    assert checkpoint_store.read(kept["path"]) is not None and not done.stdout


def _fill(place: str) -> None:
    (Path(place) / "variables.npz").write_bytes(b"weights")
