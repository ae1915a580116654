"""An attempt that begins in pieces gives freed memory back to the system; every other run keeps TensorFlow's own allocator."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.inside.tensorflow import budget

pytestmark = [
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow"),
    pytest.mark.skipif(not budget._has_onednn(), reason="TensorFlow calls malloc by itself"),
    pytest.mark.timeout(120),
]
MIB = 1 << 20
PROGRAM = """
import json, sys
from types import SimpleNamespace
import tensorflow as tf
from holdfast.inside.held_memory import held_by_this_process as held_bytes
from holdfast.inside.tensorflow.budget import limit_allocators, pages_are_given_back
from holdfast.inside.tensorflow.memory_forecast import Forecast, ResidentForecast
rescue = json.loads(sys.argv[1])
limit_allocators(SimpleNamespace(settings={"policy": "protect", "rescue": rescue}, event=lambda *_, **__: None))
tf.zeros([1])
before = held_bytes()
one, other = tf.ones([32 << 20]), tf.ones([32 << 20])
full = held_bytes()
del one, other
forecast = (ResidentForecast if pages_are_given_back() else Forecast)(tf)
taken = forecast.measure(lambda: tf.ones([32 << 20]))
print(json.dumps({"full": full - before, "freed": held_bytes() - before, "measured": taken}))
"""


def freed(**rescue: Any) -> dict[str, int]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(rescue)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_begun_in_pieces_what_is_freed_goes_back_and_is_measured_all_the_same() -> None:
    found = freed(k=2)
    assert found["full"] > 240 * MIB
    assert found["freed"] < 16 * MIB
    assert found["measured"] == pytest.approx(128 * MIB, abs=16 * MIB)


@pytest.mark.parametrize("rescue", [{"k": 1}, {"k": 2, "host_budget_bytes": 4 << 30}], ids=["healthy", "budget"])
def test_otherwise_tensorflow_keeps_it(rescue: dict[str, Any]) -> None:
    assert freed(**rescue)["freed"] > 240 * MIB
