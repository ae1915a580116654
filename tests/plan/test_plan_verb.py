"""`holdfast plan` as people start it: unedited scripts, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workplace import HOLDFAST, PATIENCE_S

SCRIPTS = Path(__file__).parents[1] / "scripts"
TORCH_LOOP = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    batch = parser.parse_args().batch
    data = TensorDataset(torch.randn(512, 256), torch.randint(0, 10, (512,)))
    model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 10))
    optimizer = torch.optim.Adam(model.parameters())
    weights = WEIGHTS
    for epoch in range(1000):
        for x, y in DataLoader(data, batch_size=batch, drop_last=True):
            optimizer.zero_grad()
            loss = (nn.functional.cross_entropy(model(x), y, reduction="none") * weights).mean()
            loss.backward()
            optimizer.step()
        print("epoch", epoch)
        torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    open("began.txt", "w").close()
    main()
"""
ANY_BATCH, ONE_BATCH = "1.0", "torch.ones(batch)"


def planned(cwd: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """With few tries: what is measured is not the matter here."""
    command = [*HOLDFAST, "plan", "--json", "--seconds", "1", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def script(tmp_path: Path, source: str) -> list[str]:
    (tmp_path / "train.py").write_text(source)
    return [sys.executable, "train.py"]


@pytest.fixture(scope="module")
def of_a_loop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    cwd = tmp_path_factory.mktemp("loop")
    command = script(cwd, TORCH_LOOP.replace("WEIGHTS", ANY_BATCH))
    code, answer, said = planned(cwd, "--memory", "1G", "--html", "plan.html", *command, "--batch", "32")
    assert code == 0, said
    return cwd, answer, said


def test_a_loop_of_pytorch_is_measured_and_saves_nothing(of_a_loop: tuple[Path, dict[str, Any], str]) -> None:
    cwd, answer, said = of_a_loop
    assert (answer["fits"], answer["batch"]) == (True, 32)
    weights = 4 * (256 * 2048 + 2048 + 2048 * 10 + 10)
    assert answer["by_kind"]["weights"] == answer["by_kind"]["gradients"] == weights
    assert 2 * weights <= answer["by_kind"]["optimizer"] < 2 * weights + 1024
    assert [layer["name"] for layer in answer["by_layer"]][:2] == ["0 (Linear)", "2 (Linear)"]
    assert sum(answer["by_kind"].values()) == pytest.approx(answer["peak_bytes"]["host"], rel=0.01)
    assert {8, 16, 32} <= {point["batch"] for point in answer["measured"]}
    assert "measuring batch 8" in said
    assert "epoch" not in said
    assert not (cwd / "model.pt").exists()
    assert not (cwd / ".holdfast").exists()
    assert "Batch 32 fits" in (cwd / "plan.html").read_text()


def test_a_batch_too_many_for_the_memory_asked_about_is_told_with_its_micro_batch(tmp_path: Path) -> None:
    command = script(tmp_path, TORCH_LOOP.replace("WEIGHTS", ANY_BATCH))
    code, answer, said = planned(tmp_path, "--memory", "400M", "--batch", "65536", *command)
    assert (code, answer["fits"]) == (1, False), said
    assert 0 < answer["micro_batch"] <= answer["largest_batch"] < 65536
    assert answer["options"][0]["title"].startswith("gradient accumulation")


@pytest.mark.slow
def test_a_script_whose_code_has_one_batch_size_is_measured_with_that(tmp_path: Path) -> None:
    command = script(tmp_path, TORCH_LOOP.replace("WEIGHTS", ONE_BATCH))
    code, answer, said = planned(tmp_path, "--memory", "1G", *command)
    assert code == 0, said
    assert [point["batch"] for point in answer["measured"]] == [64]
    assert "starting it again with its own alone" in said


def test_a_script_that_does_not_train_is_told_by_its_last_lines(tmp_path: Path) -> None:
    code, answer, said = planned(tmp_path, *script(tmp_path, "import torch\nraise ValueError('no data')"))
    assert (code, answer) == (3, {})
    assert "ValueError: no data" in said


@pytest.mark.root
def test_what_is_written_below_the_directory_is_kept_apart(of_a_loop: tuple[Path, dict[str, Any], str]) -> None:
    cwd, answer, _said = of_a_loop
    assert not (cwd / "began.txt").exists()
    assert not any("began.txt" in note for note in answer["notes"])


def test_a_fit_of_keras_is_measured_at_its_first_step(tmp_path: Path) -> None:
    code, answer, said = planned(tmp_path, "--memory", "2G", sys.executable, str(SCRIPTS / "keras_functional.py"))
    assert code == 0, said
    weights = 4 * (20 * 64 + 64 + 4 * 64 + 64 * 4 + 4)
    assert weights <= answer["by_kind"]["weights"] < weights + 64  # and the seed of the dropout
    assert answer["batch"] == 32
    assert "first" in [layer["name"] for layer in answer["by_layer"]]
    assert not (tmp_path / "model.keras").exists()


EVERY_SCRIPT = [
    "keras_custom_train_step", "keras_generator", "keras_steps_per_execution", "keras_subclassed", "keras_tf_data",
    "keras_train_on_batch", "tf_tape_eager", "tf_tape_function", "torch_accumulation", "torch_amp", "torch_hf_trainer",
    "torch_lightning", "torch_plain", "torch_scheduler_validation", "torch_two_optimizers", "torch_workers",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_SCRIPT)
def test_every_script_is_measured_in_several_sizes(name: str, tmp_path: Path) -> None:
    code, answer, said = planned(tmp_path, "--memory", "2G", sys.executable, str(SCRIPTS / f"{name}.py"))
    assert code == 0, said
    assert len(answer["measured"]) >= 3
    assert answer["by_kind"]["weights"] > 0
    assert answer["batch"] == max(point["batch"] for point in answer["measured"] if point["batch"] <= answer["batch"])
