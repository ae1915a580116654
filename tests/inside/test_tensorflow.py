from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.inside import contract
from tests.inside.contract import Ran, run_pair, run_script

pytestmark = pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras and TensorFlow")

FAULTS = (
    "telemetry.Recorder.step",
    "telemetry.Recorder.waited",
    "telemetry.Recorder.wants",
    "guarded",
    "sometimes",
    "all",
    "tensorflow.adapter.install",
    "tensorflow.loop.loop_of",
    "tensorflow.optimizer.Apply._traced",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensorflow")


@cache
def both(name: str, place: Path) -> tuple[Ran, Ran]:
    return run_pair(contract.SCRIPTS / f"{name}.py", place)


@pytest.mark.parametrize("name", ["tf_tape_function", pytest.param("tf_tape_eager", marks=pytest.mark.slow)])
def test_a_loop_is_followed_and_left_as_it_was(name: str, place: Path) -> None:
    bare, ran = both(name, place)
    contract.check_everything(bare, ran)
    assert ran.values("train.gradient_norm")
    assert [event["by"] for event in ran.told("train.begun")] == ["loop"]
    if name == "tf_tape_function":
        traced = [event["step"] for event in ran.told("train.compiled")]
        assert traced == [1, 32], "once at first, once for the last, smaller batch"


@pytest.mark.parametrize("fault", contract.faults(*FAULTS))
def test_a_fault_of_ours_stays_with_us(fault: str, place: Path) -> None:
    faulty = run_script(contract.SCRIPTS / "tf_tape_function.py", place, fault=fault)
    contract.check_fault_stays_inside(
        both("tf_tape_function", place)[0], faulty, thrown=fault != "tensorflow.optimizer.Apply._traced"
    )
