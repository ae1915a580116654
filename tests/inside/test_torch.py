"""PyTorch loops, as people write them, under Holdfast: counted right, and not changed by a bit."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.inside import contract
from tests.inside.contract import SCRIPTS, Ran, run_pair, run_script

pytest.importorskip("torch")

PLAIN = ("torch_plain", "torch_amp", "torch_workers", "torch_accumulation", "torch_scheduler_validation")
LOOPS = (*PLAIN, "torch_two_optimizers")
FRAMEWORKS = {"torch_lightning": "lightning", "torch_hf_trainer": "transformers"}
# Of trainers and such loops there are others that are quick: test_trainers, test_torch_loops.
SLOW = dict.fromkeys(("torch_amp", "torch_two_optimizers", "torch_lightning", "torch_hf_trainer"), pytest.mark.slow)
# Every function of the adapter's that a hook calls.
OWN_FAULTS = (
    "torch.adapter.install",
    "torch.step.take_over",
    "torch.deferred_reads.reading",
    "torch.deferred_reads.Norms.take",
    "torch.deferred_reads.gpus",
    "torch.loaders.shape_of",
    "torch.loaders.Loading.begin",
    "torch.loaders.Loading.look",
    "torch.loaders.Loading.enter",
    "torch.loaders.Loading.trained",
    "torch.telemetry.Telemetry.begun",
    "torch.telemetry.Telemetry.arrived",
    "torch.telemetry.Telemetry.ended",
    "torch.telemetry.Telemetry.backward",
    "torch.telemetry.Telemetry.before",
    "torch.telemetry.Telemetry.after",
    "torch.telemetry.Telemetry.go_on",
    "torch.telemetry.Telemetry.leave",
    "torch.telemetry.Telemetry.saving",
    "torch.numerics.noticing.Noticing.gradients",
    "torch.numerics.sampling.Sampling.before_pass",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torch")


@cache
def _both(place: Path, name: str) -> tuple[Ran, Ran]:
    return run_pair(SCRIPTS / f"{name}.py", place)


def _ran(place: Path, name: str, holdfast: bool) -> Ran:
    return _both(place, name)[holdfast]


@pytest.mark.parametrize("name", [pytest.param(one, marks=SLOW.get(one, ())) for one in LOOPS])
def test_a_loop_is_counted_right_and_not_changed(place: Path, name: str) -> None:
    contract.check_everything(_ran(place, name, False), _ran(place, name, True))


@pytest.mark.parametrize("name", [pytest.param(one, marks=SLOW.get(one, ())) for one in FRAMEWORKS])
def test_a_trainer_of_a_framework_comes_through_the_same_hooks(place: Path, name: str) -> None:
    if importlib.util.find_spec(FRAMEWORKS[name]) is None:
        pytest.skip(f"{FRAMEWORKS[name]} is not installed")
    contract.check_everything(_ran(place, name, False), _ran(place, name, True))


@pytest.mark.parametrize("fault", contract.faults(*contract.COMMON_FAULTS, *OWN_FAULTS))
def test_a_fault_in_the_adapter_stays_there(place: Path, fault: str) -> None:
    name = "torch_scheduler_validation" if fault.endswith((".enter", ".look")) else "torch_plain"
    faulty = run_script(SCRIPTS / f"{name}.py", place, fault=fault)
    contract.check_fault_stays_inside(_ran(place, name, False), faulty, thrown=fault != "torch.deferred_reads.gpus")


def test_observe_takes_over_nothing(place: Path) -> None:
    ran = run_script(SCRIPTS / "torch_plain.py", place / "observe", options=("--policy", "observe"))
    contract.check_unchanged(_ran(place, "torch_plain", False), ran)
    assert not ran.told("inside.hello") and not ran.values("train.steps_count")


def test_the_learning_rate_is_the_one_of_its_step(place: Path) -> None:
    ran = _ran(place, "torch_scheduler_validation", True)
    assert ran.at_steps("train.learning_rate")
    for step, rate in ran.at_steps("train.learning_rate"):
        assert rate == pytest.approx(0.1 * 0.5 ** ((step - 1) // 20 // 4))


def test_validation_is_a_phase_and_not_a_step(place: Path) -> None:
    ran = _ran(place, "torch_scheduler_validation", True)
    phases = [(told["phase"], told["step"]) for told in ran.told("train.phase")]
    assert phases[:5] == [("train", 0), ("validate", 10), ("train", 10), ("validate", 20), ("train", 20)]
    assert [phase for phase, _ in phases].count("validate") == 24


def test_saving_is_a_phase(place: Path) -> None:
    phases = [told["phase"] for told in _ran(place, "torch_plain", True).told("train.phase")]
    assert phases.count("save") == 5


def test_the_gradient_norm_is_what_the_optimizer_gets_by_part_of_the_model(place: Path) -> None:
    ran = _ran(place, "torch_accumulation", True)
    norms = ran.at_steps("train.gradient_norm")
    assert norms and all(0 < norm <= 1.0001 for _, norm in norms)  # clipped at 1
    first, last = dict(ran.at_steps("train.gradient_norm[0]")), dict(ran.at_steps("train.gradient_norm[2]"))
    for step, norm in norms:
        if step in first and step in last:
            assert norm == pytest.approx((first[step] ** 2 + last[step] ** 2) ** 0.5, rel=1e-4)


def test_the_device_is_said_once(place: Path) -> None:
    (said,) = _ran(place, "torch_plain", True).told("train.device")
    assert said["device"] == "cpu"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before Python 3.11 a frame cannot be taken off a traceback")
def test_an_error_of_the_scripts_own_shows_no_frame_of_ours(tmp_path: Path) -> None:
    bare, watched = (ran.stdout for ran in run_pair(SCRIPTS / "torch_errors.py", tmp_path))
    assert bare.count("\n") == 3
    assert watched == bare
