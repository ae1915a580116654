"""Loops out of the ordinary: what counts as a step and as an epoch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast.inside
from holdfast.inside.ring import Reader

pytest.importorskip("torch")

BOOTSTRAP = Path(holdfast.inside.__file__).parent / "bootstrap"
LOOPS = Path(__file__).with_name("torch_loops.py")
COUNTED = (
    "tensors_in_memory",
    "lbfgs",
    "in_a_thread",
    "two_threads_each_with_an_optimizer",
    "an_optimizer_inside_another",
    "one_after_another",
    "five_updates_of_the_critic_for_one_of_the_generator",
    "fused_amp_that_skips",
    "compiled_model",
    "an_update_that_raises",
    "validation_without_no_grad",
    "a_new_loader_every_epoch",
    "two_loaders_side_by_side",
    "sparse_and_empty_gradients",
)


def _run(channel: Path, *code: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    channel.mkdir()
    env = {**os.environ, "PYTHONPATH": str(BOOTSTRAP), "HOLDFAST_CHANNEL": str(channel)}
    done = subprocess.run(
        [sys.executable, *code], env=env, cwd=channel, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    (ring,) = channel.glob("*.ring")
    texts = [json.loads(body) for kind, body in Reader(str(ring)).read() if kind == 3]
    return json.loads(done.stdout), texts


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return _run(tmp_path_factory.mktemp("loops") / "channel", str(LOOPS))


@pytest.mark.parametrize("loop", COUNTED)
def test_steps_are_counted_as_the_loop_counts_them(ran: Any, loop: str) -> None:
    counted, _ = ran
    assert counted[loop]["told"] == counted[loop]["own"]


def test_nothing_of_ours_failed(ran: Any) -> None:
    assert not [event for event in ran[1] if event["kind"] == "inside.failed"]


def test_a_compiled_optimizer_works_and_is_not_counted(ran: Any) -> None:
    counted, _ = ran
    assert counted["compiled_optimizer"] == {**counted["compiled_optimizer"], "own": "worked", "told": 0}


def test_compiling_is_told(ran: Any) -> None:
    told = [event for event in ran[1] if event["kind"] == "train.compiled"]
    assert told and all(event["what"].startswith("torch.compile") and event["seconds"] >= 0 for event in told)
    assert {"phase": "compile"}.items() <= next(e for e in ran[1] if e.get("phase") == "compile").items()


def test_epochs_are_passes_that_led_to_updates(ran: Any) -> None:
    counted, _ = ran
    gained = dict(
        zip(
            counted, [later["epoch"] - before["epoch"] for before, later in _pairs(list(counted.values()))], strict=True
        )
    )
    assert gained["one_after_another"] == 2
    assert gained["validation_without_no_grad"] == 0
    assert gained["a_new_loader_every_epoch"] == 3
    assert gained["two_loaders_side_by_side"] == 2


def _pairs(values: list[dict[str, int]]) -> list[tuple[dict[str, int], dict[str, int]]]:
    return list(zip([{"epoch": -1}, *values[:-1]], values, strict=True))


def test_a_pytorch_without_global_hooks_is_counted_too(tmp_path: Path) -> None:
    """As before 2.0: the functions that register them are taken away before the adapter looks for them."""
    code = f"""
import sys
sys.meta_path = [finder for finder in sys.meta_path if type(finder).__name__ != "_Waiting"]
import torch
module = sys.modules["torch.optim.optimizer"]
del module.register_optimizer_step_pre_hook, module.register_optimizer_step_post_hook
import sitecustomize
sitecustomize._Waiting({str(BOOTSTRAP.parent)!r}, {str(tmp_path / "channel")!r}).imported("torch")
recorder = sys.modules["holdfast_inside.start"].recorder()
model = torch.nn.Linear(4, 1)
optimizers = [kind(model.parameters(), lr=0.1) for kind in (torch.optim.SGD, torch.optim.Adam)]
for optimizer in optimizers:
    for _ in range(5):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
print(recorder.steps)
"""
    counted, _ = _run(tmp_path / "channel", "-c", code)
    assert counted == 9  # the second optimizer's first update belongs to the first one's last round
