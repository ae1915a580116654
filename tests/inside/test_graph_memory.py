"""What a step holds at once lies between the two bounds that are read off its graph."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
    pytest.mark.timeout(300),
]
MODELS = ("dense", "convolution", "recurrent", "attention", "normalised")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    program = Path(__file__).with_name("keras_bounds.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize("model", MODELS)
def test_the_bound_from_below_never_calls_a_batch_too_big_that_fits(model: str, found: dict[str, Any]) -> None:
    bounds = found[model]
    assert bounds["least"] <= bounds["held"] <= bounds["most"]


@pytest.mark.parametrize("model", MODELS)
def test_and_it_is_near_enough_to_see_a_batch_that_needs_almost_twice_the_room(
    model: str, found: dict[str, Any]
) -> None:
    assert found[model]["least"] >= 0.6 * found[model]["held"]
