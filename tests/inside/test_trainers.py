"""Hugging Face's and Lightning's Trainer, unedited: a batch that does not fit is trained in pieces, and the run is the one
it would have been. On the CPU, memory runs out because a layer says so. See the programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
PROGRAMS = (("hf_rescue.py", "transformers"), *(("lightning_rescue.py", name) for name in LIGHTNING))

pytestmark = pytest.mark.timeout(420)


def _there(package: str) -> bool:
    return find_spec("torch") is not None and find_spec(package.partition(".")[0]) is not None


@cache
def _ran(program: str, package: str) -> dict[str, Any]:
    """One process trains every case."""
    if not _there(package):
        pytest.skip(f"needs {package}")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / program), package],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


# The same code under Lightning's other name: a minute and a half.
SLOW = {"pytorch_lightning": [pytest.mark.slow]}


@pytest.fixture(params=[pytest.param(one, id=one[1], marks=SLOW.get(one[1], [])) for one in PROGRAMS])
def ran(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _ran(*request.param)


def test_a_run_that_fits_is_the_same_bit_for_bit(ran: dict[str, Any]) -> None:
    assert len(ran["cases"]) >= 3
    for name, case in ran["cases"].items():
        assert case["healthy 1"] and case["healthy 2"], name
    assert ran["disclosed"]["healthy"], "nor with batch normalisation and dropout"


def test_a_run_in_pieces_is_the_run_in_one(ran: dict[str, Any]) -> None:
    """Weights, logged values, steps, schedule and callbacks; with accumulation; failing forward, backward, and midway."""
    assert len(ran["cases"]) >= 3
    for name, case in ran["cases"].items():
        ways = {way: found for way, found in case.items() if not way.startswith("healthy")}
        assert {"backward 1", "forward 2", "backward 2", "late"} <= set(ways)
        for way, found in ways.items():
            assert found["refusals"] > 0, (name, way)
            assert found["apart"] < 1e-9, (name, way, found)
            assert found["logs_apart"] < (1e-6 if "gpt2" in name else 1e-9), (
                name,
                way,
                found,
            )  # its loss is in float32
            assert found["same_calls"], (name, way)


def test_what_happened_is_told(ran: dict[str, Any]) -> None:
    assert ran["quiet"] == [], "nothing failed, was refused or differs"
    healthy = 12  # steps of the run before, which had enough memory
    first = {"step": healthy + 1, "where": "train", "k": 1, "of": "gpu", "wanted": "Tried to allocate 2.00 GiB"}
    assert ran["caught"] == first
    assert max(ran["ks"]) == 7


def test_what_would_not_be_the_same_is_left_alone(ran: dict[str, Any]) -> None:
    for name, case in ran["refused"].items():
        assert "out of memory" in case["error"], f"{name}: the user's to hear of"
        assert len(case["reasons"]) == 1 and case["failed"] == [], (name, case)
    assert "over the whole batch" in ran["refused"]["contrastive"]["reasons"][0]


def test_batch_normalisation_and_dropout_are_disclosed(ran: dict[str, Any]) -> None:
    texts = ran["disclosed"]["texts"]
    assert any("% of a standard deviation apart" in text for text in texts) and any("dropout" in text for text in texts)
    assert ran["disclosed"]["failed"] == []


def test_the_error_keeps_the_place_it_came_from() -> None:
    assert "lack_of_memory.py" in _ran(*PROGRAMS[0])["refused"]["contrastive"]["error"]


def test_two_rows_of_which_one_fits() -> None:
    narrow = _ran(*PROGRAMS[0])["narrow"]
    assert narrow["apart"] < 1e-9 and narrow["said"] == []


def test_a_run_that_was_killed_begins_in_pieces() -> None:
    begun = _ran(*PROGRAMS[0])["begun"]
    assert begun["apart"] < 1e-9 and begun["same_calls"] and begun["caught"] == [] and begun["ready"]
    assert len(begun["refused"]) == 1, "what cannot be split is run in one piece"


@pytest.mark.parametrize("package", [pytest.param(one, marks=SLOW.get(one, [])) for one in LIGHTNING])
def test_a_logged_value_that_cannot_be_put_together_is_named(package: str) -> None:
    (text,) = _ran("lightning_rescue.py", package)["odd"]
    assert "last micro-batch" in text and "spread" in text


@pytest.mark.parametrize("package", [pytest.param(one, marks=SLOW.get(one, [])) for one in LIGHTNING])
def test_a_loss_over_the_whole_batch_is_survived_where_its_modules_are_cut(package: str) -> None:
    found = _ran("lightning_rescue.py", package)["by_modules"]
    assert found["apart"] < 1e-9 and found["same_calls"] and found["refusals"] > 0


SCRIPTS = {
    "transformers": """
from transformers import Trainer, TrainingArguments
import torch
from tests.inside.lack_of_memory import Memory, Take

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
    def forward(self, x, labels):
        return {"loss": torch.nn.functional.cross_entropy(Take.apply(self.layer(x)), labels)}

Memory.allow(5)
rows = [{"x": torch.randn(4), "labels": torch.tensor(i % 3)} for i in range(48)]
args = TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=16, save_strategy="no", report_to=[],
                         use_cpu=True, disable_tqdm=True)
trainer = Trainer(Model(), args, train_dataset=rows)
trainer.train()
print("steps", trainer.state.global_step)
""",
    "lightning": """
import lightning
import torch
from tests.inside.lack_of_memory import Memory, Take

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(Take.apply(self.layer(batch[0])), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

Memory.allow(5)
data = torch.utils.data.TensorDataset(torch.randn(48, 4), torch.arange(48) % 3)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=16))
print("steps", trainer.global_step)
""",
}


@pytest.mark.parametrize("package", SCRIPTS)
@pytest.mark.parametrize("policy", ["protect", pytest.param("advise", marks=pytest.mark.slow)])
def test_an_unedited_script_under_holdfast_run(tmp_path: Path, package: str, policy: str) -> None:
    """The trainer is imported before anything else of torch, as scripts do."""
    if not _there(package):
        pytest.skip(f"needs {package}")
    script = tmp_path / "train.py"
    script.write_text(SCRIPTS[package])
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", "--policy", policy, "--dir", str(tmp_path / "state"), "--",
         sys.executable, "-W", "ignore", str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    (run,) = (tmp_path / "state" / "runs").iterdir()
    events = Journal(run / "journal").events()
    kinds = [event.kind for event in events]
    assert "inside.failed" not in kinds
    if policy == "advise":
        assert done.returncode != 0 and "rescue.caught" not in kinds
        return
    assert done.returncode == 0, done.stderr[-2000:]
    assert "steps 3" in done.stdout
    assert "rescue.caught" in kinds and max(e.data["k"] for e in events if e.kind == "rescue.k") == 4
