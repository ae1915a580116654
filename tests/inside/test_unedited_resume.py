"""Loops that know nothing of Holdfast: killed, they go on at their batch; what cannot be exact is refused in words."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.inside import checkpoint_store

ROOT = Path(__file__).parents[2]
QUICK = (
    "unnamed_loaders", "validation", "streamed", "beside_a_generator", "own", "edited", "other_model", "counted_by_zip",
    "beside_a_cycle", "graph_kept_for_later",
)  # fmt: skip
QUICK_TENSORFLOW = ("trainer_class", "drawn_in_a_function")
TRAINERS = ("transformers.hf_own_checkpoints", "lightning.pl_plain")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow and Keras")


def outcomes(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.kill_table", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@needs_torch
def test_killed_loops_end_as_if_nothing_had_happened_and_others_are_refused_in_words() -> None:
    code, said = outcomes("--kills", "1", *(f"torch.{kind}" for kind in QUICK))
    assert code == 0 and f"{len(QUICK)} of {len(QUICK)} scripts right" in said, said
    lines = {line.split()[0].removeprefix("torch."): line for line in said.splitlines()[1:-1]}
    for kind in ("unnamed_loaders", "validation", "streamed", "beside_a_generator"):
        assert "1 kills, went on from [" in lines[kind] and "[]" not in lines[kind]
    assert "from its own checkpoint 1 times" in lines["own"]
    assert "weights of (32, 8) torch.float32 on cpu were saved, this process has (33, 8)" in lines["other_model"]
    assert "was edited since. Nothing was trained, the checkpoint is kept." in said
    assert "range(5)" in lines["counted_by_zip"] and "itertools.cycle(other)" in lines["beside_a_cycle"]
    assert "graph is still to be run backward" in lines["graph_kept_for_later"]


@needs_torch
@pytest.mark.timeout(300)
def test_trainers_of_libraries_that_are_killed_end_as_if_nothing_had_happened() -> None:
    """One of them would have begun from a checkpoint of its own."""
    for package in ("transformers", "lightning"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    code, said = outcomes("--kills", "1", *TRAINERS)
    assert code == 0 and f"{len(TRAINERS)} of {len(TRAINERS)} scripts right, {len(TRAINERS)} kills" in said, said
    assert said.count("1 kills, went on from [") == len(TRAINERS) and "from []" not in said


@needs_tensorflow
@pytest.mark.timeout(300)
def test_killed_tensorflow_loops_end_as_if_nothing_had_happened() -> None:
    code, said = outcomes("--kills", "1", *(f"tensorflow.{kind}" for kind in QUICK_TENSORFLOW))
    assert code == 0 and f"{len(QUICK_TENSORFLOW)} of {len(QUICK_TENSORFLOW)} scripts right" in said, said
    lines = {line.split()[0].removeprefix("tensorflow."): line for line in said.splitlines() if "tensorflow." in line}
    assert "1 kills, went on from [" in lines["trainer_class"] and "from []" not in lines["trainer_class"]
    assert "tf.random in the tf.function step counts inside TensorFlow" in lines["drawn_in_a_function"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "group", ["torch", "transformers", "lightning", "pytorch_lightning", "tensorflow", "fit", "keras_on_torch"]
)
def test_every_kind_ends_as_if_nothing_had_happened(group: str) -> None:
    code, said = outcomes("--kills", "2", group)
    assert code == 0, said


def test_what_somebody_else_could_have_written_is_not_unpickled(tmp_path: Path) -> None:
    written = checkpoint_store.write(str(tmp_path / "checkpoints"), {}, lambda _place: None)
    checkpoint_store.check_owner(written["path"])
    (tmp_path / "checkpoints").chmod(0o777)
    with pytest.raises(checkpoint_store.NotOurs, match="others may write there"):
        checkpoint_store.check_owner(written["path"])
