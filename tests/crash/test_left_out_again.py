"""A run that is killed after a bad batch was left out leaves out the same ones, and ends with the same weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).parents[1] / "scripts" / "torch_bad_rows.py"


def _weights(folder: Path, *arguments: str) -> tuple[str, str]:
    folder.mkdir()
    command = [sys.executable, "-m", "holdfast", "run", "--checkpoint", "1", sys.executable, str(SCRIPT), *arguments]
    environment = {**os.environ, "HOLDFAST_DIR": str(folder / "record")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("weights:")[-1].strip(), done.stderr


@pytest.mark.slow
def test_a_batch_that_was_left_out_is_left_out_again(tmp_path: Path) -> None:
    whole, _ = _weights(tmp_path / "whole")
    killed, said = _weights(tmp_path / "killed", "kill")
    assert "started again once" in said
    assert killed == whole
