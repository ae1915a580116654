from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.inside import contract
from tests.inside.contract import Ran, run_pair, run_script

pytestmark = pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras and TensorFlow")

SCRIPTS = (
    "keras_functional",
    pytest.param("keras_subclassed", marks=pytest.mark.slow),
    pytest.param("keras_tf_data", marks=pytest.mark.slow),
    pytest.param("keras_generator", marks=pytest.mark.slow),
    pytest.param("keras_custom_train_step", marks=pytest.mark.slow),
    pytest.param("keras_steps_per_execution", marks=pytest.mark.slow),
    pytest.param("keras_train_on_batch", marks=pytest.mark.slow),
)
FAULTS = (
    *contract.COMMON_FAULTS,
    "keras.adapter.install",
    "keras.adapter.take_over",
    "keras.step.tracing_of",
    "keras.step.TracedSteps.new",
    "keras.late_values.gradient_norms",
    "keras.fit_progress.shape_of",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keras")


@cache
def both(name: str, place: Path) -> tuple[Ran, Ran]:
    return run_pair(contract.SCRIPTS / f"{name}.py", place)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_followed_and_left_as_it_was(name: str, place: Path) -> None:
    bare, ran = both(name, place)
    contract.check_everything(bare, ran)
    assert ran.told("train.compiled")[0]["step"] == 1
    assert [event["phase"] for event in ran.told("train.phase")][:2] == ["compile", "train"]
    if name == "keras_functional":
        check_values(ran)
    if name == "keras_generator":
        check_end_of_data(ran)


def check_values(ran: Ran) -> None:
    rates = ran.at_steps("train.learning_rate")
    assert rates, "a learning rate that decays"
    assert all(0 <= rate < 1e-3 for _, rate in rates)
    layers = {sample.name for sample in ran.samples if sample.name.startswith("train.gradient_norm[")}
    assert "train.gradient_norm[first]" in layers
    assert "train.gradient_norm[last]" in layers
    norms = ran.values("train.gradient_norm")
    assert norms and all(norm > 0 for norm in norms)
    phases = [event["phase"] for event in ran.told("train.phase")]
    assert phases.count("validate") == ran.report["epochs"]
    assert phases[-1] == "idle"
    assert len(ran.told("train.compiled")) == 1, "the last, smaller batch is no reason to trace again"


def check_end_of_data(ran: Ran) -> None:
    first = ran.told("train.data_exhausted")[0]
    assert (first["epoch"], first["steps_done"], first["steps_asked"]) == (1, 50, 100)
    assert contract.wait_share(ran) > 0.3
    assert ran.values("train.gradient_norm"), "of samples: plain SGD keeps nothing to read it from"


@pytest.mark.parametrize("fault", contract.faults(*FAULTS))
def test_a_fault_of_ours_stays_with_us(fault: str, place: Path) -> None:
    faulty = run_script(contract.SCRIPTS / "keras_functional.py", place, fault=fault)
    contract.check_fault_stays_inside(both("keras_functional", place)[0], faulty)


def test_an_error_of_the_users_looks_as_it_always_did(place: Path) -> None:
    bare, ran = both("keras_shape_error", place)
    assert (ran.exit_code, ran.stdout) == (bare.exit_code, bare.stdout)
    assert ran.exit_code == 1
    assert not ran.told("inside.failed")
    assert traceback_of(ran) == traceback_of(bare)


def traceback_of(ran: Ran) -> list[str]:
    lines = ran.stderr.splitlines()
    return [line for line in lines[lines.index("Traceback (most recent call last):") :] if "holdfast:" not in line]
