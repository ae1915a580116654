"""Forked and spawned children of a training process: nothing hangs, nothing is told twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.journal import Journal
from tests.workplace import Workplace

pytest.importorskip("torch")

LOOP = """
import multiprocessing, os, sys, threading, time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def data():
    return TensorDataset(torch.randn(320, 8), torch.randn(320, 1))


def train(loader, epochs=2, between=lambda number: None):
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    number = 0
    for epoch in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
            number += 1
            between(number)
    return number
"""


def _run(workplace: Workplace, source: str) -> tuple[list[int], Journal]:
    """The numbers the script printed, and the record."""
    command = workplace.script("")
    (workplace.path / "train.py").write_text(LOOP + source)
    try:
        done = workplace.run(command, timeout=200)
    except subprocess.TimeoutExpired as stuck:
        raise AssertionError(f"it hangs: {stuck.stderr!r}") from stuck
    assert done.returncode == 0, done.stderr.decode()
    (run,) = [path for path in (workplace.path / ".holdfast/runs").iterdir() if not path.is_symlink()]
    return [int(word) for word in done.stdout.split()], Journal(run / "journal")


def _steps(journal: Journal) -> dict[str, float]:
    """Steps told, by process."""
    return {
        sample.name: sample.value
        for sample in journal.samples()
        if sample.name.endswith(".steps_count") and sample.value is not None
    }


def _sound(journal: Journal) -> None:
    assert not journal.events("inside.failed")


@pytest.mark.parametrize("method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
@pytest.mark.parametrize("persistent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_loader_workers_are_silent_and_steps_are_exact(workplace: Workplace, method: str, persistent: bool) -> None:
    source = f"""
if __name__ == "__main__":
    loader = DataLoader(data(), batch_size=8, num_workers=2, multiprocessing_context="{method}",
                        persistent_workers={persistent})
    print(train(loader))
"""
    (steps,), journal = _run(workplace, source)
    _sound(journal)
    assert steps == 80 and _steps(journal) == {"train.steps_count": 80}
    epochs = [sample.value for sample in journal.samples() if sample.name == "train.epoch_count"]
    assert epochs[-1] == 1


def test_a_fork_in_the_middle_of_training(workplace: Workplace) -> None:
    source = """
def fork(number):
    if number % 20 == 10:
        pid = os.fork()
        if pid == 0:
            torch.save({"step": number}, "copy.pt")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

print(train(DataLoader(data(), batch_size=8), between=fork))
"""
    (steps,), journal = _run(workplace, source)
    _sound(journal)
    assert _steps(journal) == {"train.steps_count": steps}
    assert len(journal.events("inside.hello")) == 1


def test_a_forked_child_that_trains_is_told_as_itself(workplace: Workplace) -> None:
    source = """
def fork(number):
    if number == 25:
        pid = os.fork()
        if pid == 0:
            print(train(DataLoader(data(), batch_size=32)), flush=True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

print(train(DataLoader(data(), batch_size=8), between=fork))
"""
    (child, parent), journal = _run(workplace, source)
    _sound(journal)
    assert sorted(_steps(journal).values()) == [child, parent] == [20, 80]
    assert _steps(journal)["train.steps_count"] in (20, 80)


def test_forks_while_another_thread_writes(workplace: Workplace) -> None:
    source = """
counted = []
writing = threading.Thread(target=lambda: counted.append(train(DataLoader(data(), batch_size=4), epochs=10)))
writing.start()
while writing.is_alive():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    time.sleep(0.005)
print(counted[0])
"""
    (steps,), journal = _run(workplace, source)
    _sound(journal)
    assert steps == 800 and _steps(journal) == {"train.steps_count": 800}


def test_spawned_processes_that_do_not_train_tell_no_steps(workplace: Workplace) -> None:
    source = """
def look(number):
    return int(torch.ones(number).sum())


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        waiting = pool.map_async(look, range(20))
        print(train(DataLoader(data(), batch_size=8)))
        assert waiting.get(60) == list(range(20))
"""
    (steps,), journal = _run(workplace, source)
    _sound(journal)
    assert _steps(journal) == {"train.steps_count": steps}


def test_spawned_processes_that_train_are_told_each(workplace: Workplace) -> None:
    source = """
def rank(index):
    assert train(DataLoader(data(), batch_size=8 * (index + 1))) == 80 // (index + 1)


if __name__ == "__main__":
    import torch.multiprocessing
    torch.multiprocessing.spawn(rank, nprocs=2)
"""
    _, journal = _run(workplace, source)
    _sound(journal)
    assert sorted(_steps(journal).values()) == [40, 80]


def test_rings_of_a_run_are_few(workplace: Workplace) -> None:
    source = """
if __name__ == "__main__":
    print(train(DataLoader(data(), batch_size=8, num_workers=2), epochs=3))
"""
    _run(workplace, source)
    rings = list(Path(workplace.path / ".holdfast/runs").glob("*/inside/*.ring"))
    assert len(rings) <= 1
