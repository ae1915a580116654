"""A whole step in one function under torch.compile: nothing hangs on its calls, so it is counted and its loss is read from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
BACKENDS = ["eager", *(pytest.param(name, marks=pytest.mark.slow) for name in ("aot_eager", "inductor"))]


@cache
def _ran(backend: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.inside.torch_compiled_steps", backend]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_whole_step_is_counted_once_said_not_to_be_seen_and_stays_the_same(backend: str) -> None:
    found = _ran(backend)["healthy"]
    assert (found["as bare"], found["steps"], found["bad"], found["failed"]) == (True, 30, [], [])
    (reason,) = found["not seen"]
    assert "torch.compile (train_step)" in reason


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loss_that_it_returns_is_noticed_at_its_step_where_it_is_not_finite(backend: str) -> None:
    found = _ran(backend)["bad"]
    assert (found["bad"], found["steps"], found["failed"]) == ([[21, "loss", "unknown"]], 30, [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_that_only_computes_the_loss_is_watched_as_ever(backend: str) -> None:
    found = _ran(backend)["forward"]
    assert (found["not seen"], found["steps"], found["bad"], found["failed"]) == ([], 30, [], [])
