"""Loops people write, unedited: memory runs out in the forward and in the backward pass, and the result stays the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
    pytest.mark.timeout(280),
]
ROOT = Path(__file__).parents[2]
EXACT = (
    "plain",
    "zeroed_after_the_forward_pass",
    "accumulation",
    "clipping_and_schedulers",
    "validation_in_between",
    "encoder_and_decoder",
    "loss_within_the_model_and_tied_weights",
    "own_sampler",
    "lstm",
    "own_learned_prompt",
    "variational",
    "dropout",
    "two_optimizers",
    "contrastive",
)
FORWARD = ("inputs_that_want_a_gradient",)  # torch.autograd.grad is not taken over
OTHERS = ("mixed_precision", "batch_normalisation")
SHORTAGES = ("forward 7", "backward 7", "forward 2", "backward 3")


@pytest.fixture(scope="module")
def ran() -> dict[str, dict[str, Any]]:
    """One process trains them all."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.inside.unedited_loops"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=270, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", [*EXACT, *FORWARD, *OTHERS])
def test_a_loop_that_fits_has_the_same_bits_and_nothing_is_told(ran: Any, name: str) -> None:
    told = [kind for kind in ran[name]["healthy"]["told"] if kind not in ("numerics.setup", "numerics.health")]
    assert ran[name]["healthy"]["same"] and told == []


@pytest.mark.parametrize("shortage", SHORTAGES)
@pytest.mark.parametrize("name", EXACT)
def test_a_loop_that_does_not_fit_ends_with_the_same_weights(ran: Any, name: str, shortage: str) -> None:
    found = ran[name][shortage]
    assert found["refused"] == found["failed"] == []
    assert found["refusals"] > 0, "it fits: nothing is shown"
    assert found["apart"] < 1e-10 and found["losses"] < 1e-10


@pytest.mark.parametrize("shortage", ["forward 7", "forward 2"])
def test_gradients_of_inputs_are_right_too(ran: Any, shortage: str) -> None:
    (name,) = FORWARD
    found = ran[name][shortage]
    assert found["refusals"] > 0 and found["apart"] < 1e-10


@pytest.mark.parametrize("shortage", SHORTAGES)
def test_mixed_precision_with_a_loss_scale_stays_within_its_rounding(ran: Any, shortage: str) -> None:
    found = ran["mixed_precision"][shortage]
    assert found["refusals"] > 0 and found["failed"] == [] and found["apart"] < 1e-3


@pytest.mark.parametrize("shortage", SHORTAGES)
def test_batch_normalisation_sees_pieces_and_that_is_said_with_its_size(ran: Any, shortage: str) -> None:
    found = ran["batch_normalisation"][shortage]
    assert found["refusals"] > 0 and found["failed"] == []
    assert any("% of a standard deviation apart" in text for text in found["disclosed"])
    assert found["apart"] < 0.5


def test_what_goes_on_to_the_user_has_no_frame_of_ours(ran: Any) -> None:
    assert set(ran) >= {*EXACT, *FORWARD, *OTHERS}
    for name, cases in ran.items():
        assert len(cases) > 1, name
        for shortage, found in cases.items():
            assert found["our_frames"] == "", (name, shortage)
