"""PyTorch loops that know nothing of Holdfast: killed, they go on at their batch; what cannot be exact is refused in words."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.inside import checkpoint_store

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
QUICK = ("plain", "validation", "own", "edited", "other_model", "counted_by_zip", "graph_kept_for_later")

TRAINERS = ("hf_own_checkpoints", "pl_plain")


def outcomes(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.resume_torch", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_killed_loops_end_as_if_nothing_had_happened_and_others_are_refused_in_words() -> None:
    code, said = outcomes("--kills", "1", *QUICK)
    assert code == 0 and f"{len(QUICK)} of {len(QUICK)} loops right" in said, said
    lines = {line.split()[0]: line for line in said.splitlines()[1:-1]}
    for kind in ("plain", "validation"):
        assert "1 kills, went on from steps [" in lines[kind] and "[]" not in lines[kind]
    assert "from its own checkpoint 1 times" in lines["own"]
    assert "weights of (32, 8) torch.float32 on cpu were saved, this process has (33, 8)" in lines["other_model"]
    assert "was edited since. Nothing was trained, the checkpoint is kept." in said
    assert "range(5)" in lines["counted_by_zip"]
    assert "graph is still to be run backward" in lines["graph_kept_for_later"]


def test_trainers_of_libraries_that_are_killed_end_as_if_nothing_had_happened() -> None:
    """One of them would have begun from a checkpoint of its own."""
    for package in ("transformers", "lightning"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    code, said = outcomes("--kills", "1", *TRAINERS)
    assert code == 0 and f"{len(TRAINERS)} of {len(TRAINERS)} loops right, {len(TRAINERS)} kills" in said, said
    assert said.count("1 kills, went on from steps [") == len(TRAINERS) and "[]" not in said


@pytest.mark.slow
def test_every_loop_ends_as_if_nothing_had_happened() -> None:
    code, said = outcomes("--kills", "2")
    assert code == 0, said


def test_what_somebody_else_could_have_written_is_not_unpickled(tmp_path: Path) -> None:
    written = checkpoint_store.write(str(tmp_path / "checkpoints"), {}, lambda _place: None)
    checkpoint_store.check_owner(written["path"])
    (tmp_path / "checkpoints").chmod(0o777)
    with pytest.raises(checkpoint_store.NotOurs, match="others may write there"):
        checkpoint_store.check_owner(written["path"])
