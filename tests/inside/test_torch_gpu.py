"""On a GPU: no synchronisation of ours, updates that only the GPU knows to be skipped are not counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast.inside
from holdfast.inside.ring import STEP, STEP_BODY, TEXT, VALUE, VALUE_BODY, Reader

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

BOOTSTRAP = Path(holdfast.inside.__file__).parent / "bootstrap"


def test_a_loop_in_which_a_synchronisation_is_an_error(tmp_path: Path) -> None:
    env = {**os.environ, "HOLDFAST_CHANNEL": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BOOTSTRAP), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("torch_on_gpu.py"))],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout.splitlines()[-1])
    (ring,) = tmp_path.glob("*.ring")
    records = Reader(str(ring)).read()
    assert not [body for kind, body in records if kind == TEXT and json.loads(body)["kind"] == "inside.failed"]
    assert [STEP_BODY.unpack(body)[1] for kind, body in records if kind == STEP][-1] == own["own"]
    assert own["told_epochs"] == own["epochs"] and own["skipped"] > 0
    values: dict[str, list[tuple[int, float]]] = {}
    for kind, body in records:
        if kind == VALUE:
            _, step, value, name = VALUE_BODY.unpack(body)
            values.setdefault(name.rstrip(b"\0").decode(), []).append((step, value))
    assert values["loss"] and values["gradient_norm"] and values["allocated_bytes"]
    for step, loss in values["loss"]:
        assert loss == pytest.approx(own["losses"][step - 1], rel=1e-5)
    assert all(0 < norm < 100 for _, norm in values["gradient_norm"])  # unscaled: 256 times smaller than what is there
