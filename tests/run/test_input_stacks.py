"""Stacks of whoever prepares the data are taken once training has waited for some seconds, and not before."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.stack_snapshots import ProcessSnapshot, SourceFrame, ThreadSnapshot, TreeSnapshot
from holdfast.supervisor.input_stacks import LOOKS, InputStacks
from holdfast.supervisor.open_files import file_system_of, files_read
from holdfast.vocabulary import Event, Sample
from tests.workplace import Workplace

PREPARES = (
    SourceFrame("data.py", 3, "__getitem__", "decode()"),
    SourceFrame("/s/torch/utils/data/_utils/fetch.py", 5, "fetch"),
)
COMPUTES = (SourceFrame("train.py", 9, "main", "model(x)"),)


class Taking:
    """As StackTaking, at once."""

    under_way = False

    def __init__(self) -> None:
        self.begun = 0

    def begin(self) -> bool:
        self.begun += 1
        return True

    def result(self) -> TreeSnapshot | None:
        if not self.begun:
            return None
        threads = (ThreadSnapshot(1, "", "R", 0.0, PREPARES), ThreadSnapshot(2, "", "R", 0.0, COMPUTES))
        return TreeSnapshot(0.0, 0.0, (ProcessSnapshot(os.getpid(), 1, "", "", "R", 0.0, 0, threads),))


def events(ratios: list[float], steps: float = 100.0) -> tuple[list[Event], Any]:
    taking = Taking()
    watch = InputStacks(taking)  # type: ignore[arg-type]
    found: list[Event] = []
    for second, ratio in enumerate(ratios):
        at = 100.0 + second
        found += watch.look([Sample("train.steps_count", steps, at), Sample("train.wait_ratio", ratio, at)], {7}, at)
    return found, taking


def test_a_run_that_waits_is_asked_some_times_and_never_again() -> None:
    (event,), taking = events([0.8, 0.4, 0.9, 0.8] * 8)
    assert taking.begun == LOOKS and len(event.data["looks"]) == LOOKS
    assert [[frame[0] for frame in one["frames"]] for one in event.data["looks"][0]] == [[f.file for f in PREPARES]]


@pytest.mark.parametrize(
    "healthy", [{"ratios": [0.3] * 30}, {"ratios": [0.9] * 30, "steps": 4.0}, {"ratios": [0.9, 0.1, 0.2] * 9}]
)
def test_a_run_that_does_not_is_never_asked(healthy: dict[str, Any]) -> None:
    found, taking = events(**healthy)
    assert not found and not taking.begun


def test_files_that_are_read_are_known_with_their_file_system(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"
    path.write_bytes(bytes(5000))
    with path.open("rb"), (tmp_path / "log").open("w"), Path("/proc/self/statm").open():
        found = files_read(Path("/proc"), os.getpid(), 50, 4000)
    assert str(path) in [one["path"] for one in found] and not any("statm" in str(one["path"]) for one in found)
    assert " at /" in file_system_of(Path("/proc"), os.getpid(), str(path))


SLOW_STORE = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Recordings(Dataset):
    def __len__(self):
        return 10**6
    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.rand(8), torch.rand(())
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
began = time.time()
for x, y in DataLoader(Recordings(), batch_size=16):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x)[:, 0], y).backward()
    time.sleep(0.02)
    optimizer.step()
    if time.time() - began > 16:
        break
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_a_real_loader_that_is_slow_is_named_with_its_line(workplace: Workplace) -> None:
    workplace.run(workplace.script(SLOW_STORE))
    (starved,) = [one for one in workplace.why()["noticed"] if one["id"] == "input-starvation"]
    told = " ".join(one["text"] for one in starved["evidence"])
    assert "train.py:8 in __getitem__: time.sleep(0.006)" in told and "times as fast" in told
    assert "num_workers=" in starved["remedies"][0]["how"]
