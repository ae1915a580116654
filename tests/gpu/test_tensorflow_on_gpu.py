"""Keras on TensorFlow on a real GPU, by the scripts of `python -m lab.oom --on tensorflow`: a batch that does not fit is trained
all the same, and a run that is killed goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from lab.oom import on_tensorflow_gpu
from lab.oom.tensorflow_cases import ENDED, UNTOUCHED, Ended
from lab.oom.tensorflow_runs import Trained, apart, resumed_step, train, train_until

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(500)]
PATIENCE_S = 150.0
MIB = 1 << 20
SIX_LAYERS_MB = 1500  # of 1,762 that the whole batch takes


@cache
def _sees_a_gpu() -> bool:
    return find_spec("tensorflow") is not None and on_tensorflow_gpu.sees_a_gpu()


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    if not _sees_a_gpu():
        pytest.skip("TensorFlow sees no GPU here")


class Trainings:
    """In one folder; the uncapped bare run of each variant once."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._whole: dict[str, Trained] = {}

    def whole(self, variant: str) -> Trained:
        if variant not in self._whole:
            self._whole[variant] = self.run(variant, ["--growth"], None)
        assert self._whole[variant].exit == 0, self._whole[variant].errors[-2000:]
        return self._whole[variant]

    def run(self, variant: str, card: list[str], options: tuple[str, ...] | None) -> Trained:
        return train(self.place, variant, variant, card, options=options, patience=PATIENCE_S)

    def until(self, case: Ended) -> Trained:
        return train_until(self.place, case, ["--growth"], PATIENCE_S)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    yield Trainings(tmp_path_factory.mktemp("tensorflow"))


def check_rescued(whole: Trained, held: Trained, within: float, cap_mib: int) -> None:
    print(held.how, held.k, held.seconds_lost, held.peak, held.verdict)
    assert held.exit == 0, held.errors[-2000:]
    assert (held.outcome, held.cause) == ("recovered", "gpu-memory-exhausted")
    distance = apart(whole, held)
    assert distance is not None
    assert distance <= within
    assert held.peak is not None
    assert held.peak <= cap_mib * MIB


def test_a_batch_that_fits_the_card_is_left_alone(trainings: Trainings) -> None:
    held = trainings.run("dense", ["--limit", "2600"], ())
    assert held.exit == 0, held.errors[-2000:]
    assert (held.how, held.outcome) == ("not touched", "completed")
    distance = apart(trainings.whole("dense"), held)
    assert distance is not None
    assert distance <= UNTOUCHED


@pytest.mark.parametrize("variant", ["dense", "dense-no-jit", "train-on-batch"])
def test_a_batch_too_big_for_the_card_is_trained_all_the_same(trainings: Trainings, variant: str) -> None:
    card = ["--limit", str(SIX_LAYERS_MB)]
    bare = trainings.run(variant, card, None)
    assert bare.exit != 0, "the batch fits: nothing is shown"
    check_rescued(trainings.whole(variant), trainings.run(variant, card, ()), within=1e-4, cap_mib=SIX_LAYERS_MB)


def test_a_loop_of_the_scripts_own_is_refused_with_the_cause(trainings: Trainings) -> None:
    held = trainings.run("tape-loop", ["--limit", str(SIX_LAYERS_MB)], ())
    assert held.exit != 0
    assert held.cause == "gpu-memory-exhausted", held.verdict
    assert "tf.function" in held.how, held.how


def test_a_budget_for_the_card_is_held(trainings: Trainings) -> None:
    held = trainings.run("dense", ["--growth"], ("--gpu-memory", "1200MiB"))
    check_rescued(trainings.whole("dense"), held, within=1e-4, cap_mib=1200)


@pytest.mark.parametrize("variant", ["validation", "predict"])
def test_an_evaluation_too_big_for_the_card_is_finished(trainings: Trainings, variant: str) -> None:
    whole = trainings.whole(variant)
    limit = int((whole.peak or 0) * 0.6) // MIB
    check_rescued(whole, trainings.run(variant, ["--limit", str(limit)], ()), within=1e-4, cap_mib=limit)


def test_a_run_killed_at_a_step_goes_on_there_and_ends_with_the_same_bits(trainings: Trainings) -> None:
    killed = trainings.until(ENDED[0])
    assert killed.signalled_at is not None, killed.errors[-2000:]
    assert killed.exit == 0, killed.errors[-2000:]
    assert resumed_step(killed), "it began anew"
    assert apart(trainings.whole("steady"), killed) == 0.0


def test_sigterm_saves_and_ends_with_143(trainings: Trainings) -> None:
    ended = trainings.until(ENDED[1])
    assert ended.signalled_at is not None, ended.errors[-2000:]
    assert ended.exit == on_tensorflow_gpu.TERMINATED
    assert ended.saved_by_signal
