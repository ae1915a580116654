"""With checkpoints being made all the time a script does what it does without, and a fault of ours stays with us."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.inside.attempts import SCRIPTS, Run
from tests.inside.contract import FAULTS

pytestmark = pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras and TensorFlow")

EXACT = ("steps", "epochs", "losses", "batch_shape", "weights")


def both(name: str, place: Path, **env: str) -> tuple[Run, Run]:
    bare, kept = (
        Run(place / "bare", [str(SCRIPTS / f"{name}.py")]),
        Run(place / "kept", [str(SCRIPTS / f"{name}.py")], 0.2),
    )
    attempt = kept.start(**env)  # side by side
    bare.attempts.append(bare.bare())
    attempt.finish()
    return bare, kept


def check_same(bare: Run, kept: Run) -> None:
    one, other = bare.attempts[0], kept.attempts[0]
    assert other.process.returncode == one.process.returncode, other.err[-2000:]
    assert other.out.splitlines()[:-1] == one.out.splitlines()[:-1]
    for key in EXACT:
        assert other.report().get(key) == one.report().get(key), key


@pytest.mark.parametrize(
    "name",
    [
        "keras_functional",
        *(
            pytest.param(f"keras_{name}", marks=pytest.mark.slow)
            for name in (
                "subclassed",
                "tf_data",
                "generator",
                "custom_train_step",
                "steps_per_execution",
                "train_on_batch",
            )
        ),
    ],
)
def test_a_script_that_is_saved_all_the_time_is_left_as_it_was(name: str, tmp_path: Path) -> None:
    bare, kept = both(name, tmp_path)
    check_same(bare, kept)
    (attempt,) = kept.attempts
    assert not attempt.events("inside.failed"), attempt.events("inside.failed")
    assert attempt.events("checkpoint.saved")
    assert not attempt.events("checkpoint.failed")


@pytest.mark.parametrize("fault", [pytest.param(f, marks=pytest.mark.slow) for f in ("guarded", "all", "sometimes")])
def test_a_fault_of_ours_stays_with_us(fault: str, tmp_path: Path) -> None:
    thrown = tmp_path / "thrown"
    bare, kept = both(
        "keras_functional",
        tmp_path,
        PYTHONPATH=str(FAULTS),
        HOLDFAST_TEST_FAULT=fault,
        HOLDFAST_TEST_THROWN=str(thrown),
    )
    assert thrown.read_text()
    assert "thrown by a test" not in kept.attempts[0].out + kept.attempts[0].err
    check_same(bare, kept)


@pytest.mark.slow
def test_an_error_of_the_users_looks_as_it_always_did(tmp_path: Path) -> None:
    bare, kept = both("keras_shape_error", tmp_path)
    one, other = (run.attempts[0].err.splitlines() for run in (bare, kept))
    begin = "Traceback (most recent call last):"
    assert other[other.index(begin) :] == one[one.index(begin) :]
