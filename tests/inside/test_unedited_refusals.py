"""Unedited loops: what is not run in pieces is refused in words, and what a module's call is otherwise stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.inside.unedited_refusals"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("across rows", "depends on the other rows"),
        ("keeps", "keeps something of each forward pass"),
        ("in place", "changes its inputs in place"),
        ("buffered", "training changes what is no statistic"),
        ("hooked", "hooks of its modules"),
        ("in parallel", "several devices"),
    ],
)
def test_what_would_not_be_the_same_is_refused_with_its_reason(found: Any, name: str, reason: str) -> None:
    case = found[f"{name} forward"]
    assert case["error"] == "OutOfMemoryError" and case["failed"] == []
    assert len(case["refused"]) == 1 and reason in case["refused"][0]
    assert found[f"{name} backward"]["error"] == "OutOfMemoryError"
    assert found[f"{name} backward"]["failed"] == []


def test_the_users_own_error_has_its_frames_and_none_of_ours(found: Any) -> None:
    before, after = found["frames"]
    passed_by = "_wrapped_call_impl"  # PyTorch's own, which only chooses what to call; ours does in inner calls
    assert [name for name in before if name != passed_by] == [name for name in after if name != passed_by]
    assert len(before) > 3


@pytest.mark.parametrize("what", ["pickled", "compiled", "fx", "jit", "vmap"])
def test_a_module_can_still_be(found: Any, what: str) -> None:
    assert found[what] is True


def test_a_compiled_module_is_left_alone(found: Any) -> None:
    assert found["compiled told"] == []
