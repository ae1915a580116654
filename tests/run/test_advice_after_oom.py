"""`--policy advise`: a PyTorch loop that ran out of memory gets one line that names the call to write."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
LOOP = "import torch\nraise {}\n"


def stderr_of(error: str, policy: str, place: Path) -> str:
    (place / "train.py").write_text(LOOP.format(error))
    command = [sys.executable, "-m", "holdfast", "run", "--policy", policy, "--dir", str(place / "state"), "--"]
    done = subprocess.run(
        [*command, sys.executable, "train.py"], cwd=place, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_the_two_lines_to_add_are_named_once(tmp_path: Path) -> None:
    said = stderr_of("torch.OutOfMemoryError('CUDA out of memory.')", "advise", tmp_path)
    assert said.count("holdfast.backward(") == 1 and "import holdfast" in said


def test_another_error_gets_no_such_line(tmp_path: Path) -> None:
    assert "holdfast.backward(" not in stderr_of("ValueError('memory')", "advise", tmp_path)
