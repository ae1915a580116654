"""Places in the data that are found again, memory that stays bounded, threads that go with their iterator."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast
import holdfast.data
from holdfast.data.stream.source import CannotStream
from holdfast.inside.keep import Keep
from tests.inside.test_unedited_resume import outcomes
from tests.workplace import wait_for

X = np.arange(4000, dtype="float32").reshape(1000, 4)


def data_of(**options: Any) -> Any:
    return holdfast.data.open(X, **{"batch": 16, "shuffle": True, "seed": 5, "budget": "4K", **options})


def numbers(batches: Any) -> list[list[float]]:
    return [batch[:, 0].tolist() for batch in batches]


@pytest.mark.parametrize("given", [0, 1, 20, 62, 63])
def test_a_place_is_found_again_in_another_object(given: int) -> None:
    first = data_of()
    list(first)  # an epoch before it
    iterator = iter(first)
    for _ in range(given):
        next(iterator)
    state = first.state()
    second = data_of()
    second.restore(state)
    assert state["batch"] < len(first)
    rest = numbers(iterator) or numbers(first)
    assert numbers(second) == rest and numbers(second) == numbers(first)


def test_it_prints_what_it_holds() -> None:
    assert repr(data_of()) == "<1,000 rows in batches of 16: x float32[4]>"


def test_a_place_in_other_data_is_refused() -> None:
    state = data_of().state()
    for other in ({"seed": 6}, {"batch": 8}, {"budget": "8K"}):
        with pytest.raises(CannotStream, match="other data"):
            data_of(**other).restore(state)


def test_without_a_seed_the_order_follows_numpys() -> None:
    orders = []
    for _ in range(2):
        np.random.seed(3)
        orders.append(numbers(data_of(seed=None)))
    assert orders[0] == orders[1] != numbers(data_of(seed=None))


def test_keep_gives_each_epoch_its_own_order_also_after_a_restart() -> None:
    whole = {epoch: numbers(batch for _, batch in data_of().batches(epoch)) for epoch in (0, 1, 2)}
    data = data_of()
    data.set_epoch(7)  # as a process that was started again may have it
    kept = Keep(None, {})
    assert {epoch: numbers(kept.batches(data)) for epoch in kept.epochs(3)} == whole


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("holdfast-data")]


def test_threads_end_with_the_pass_that_started_them() -> None:
    data = data_of()
    for _ in zip(data, range(3), strict=False):
        pass
    iterator = iter(data)
    next(iterator)
    assert threads()
    del iterator
    gc.collect()
    assert wait_for(lambda: not threads(), 5), threads()


def test_a_batch_is_the_users_own() -> None:
    data = data_of(shuffle=False)
    kept = []
    for batch in data:
        kept.append(batch.copy())
        batch[:] = -1
    assert np.array_equal(np.concatenate(kept), X)


def test_nothing_is_imported_before_it_is_used() -> None:
    code = "import sys, holdfast, holdfast.data; print([m for m in ('numpy', 'pyarrow', 'torch', 'tensorflow') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
    assert holdfast.data is sys.modules["holdfast.data"]


PEAK = """
import os, resource, sys
import numpy, holdfast.data
def peak(): return int([l for l in open("/proc/self/status") if l.startswith("VmHWM")][0].split()[1]) >> 10
before = peak()
with open("big.npy", "wb") as file:
    numpy.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 19, 1024)})
    file.truncate(file.tell() + (1 << 31))
data = holdfast.data.open("big.npy", batch=512, shuffle=True, seed=1, budget="64M")
rows = sum(len(batch) for batch in data)
print(rows, peak() - before)
"""


def test_two_gigabytes_go_through_64_megabytes(tmp_path: Path) -> None:
    """A file with holes, so nothing is read from a disk."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAK)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    rows, grown_mib = map(int, done.stdout.split())
    assert rows == 1 << 19 and grown_mib < 80, done.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_workers_share_an_epoch_and_pytorch_gets_tensors() -> None:
    import torch

    labels = np.arange(1000)
    data = data_of(labels=labels).torch()
    for workers in (0, 2):
        torch.manual_seed(1)
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers)
        orders = []
        for _ in range(2):
            x, y = (torch.cat(parts) for parts in zip(*loader, strict=True))
            assert sorted(y.tolist()) == labels.tolist() and torch.equal(x[:, 0], 4.0 * y)
            orders.append(y.tolist())
        assert orders[0] != orders[1] and len(loader) == 63
    state = {"epoch": 3, "batch": 60, "data": data.known_as}
    data.load_state_dict(state)
    assert len(list(data)) == 3 and data.state_dict()["batch"] == 63


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow and Keras")
@pytest.mark.timeout(300)
@pytest.mark.slow
def test_a_killed_fit_over_streamed_data_ends_as_if_nothing_had_happened() -> None:
    code, said = outcomes("--kills", "1", "fit.streamed")
    assert code == 0 and "1 kills, went on from [" in said and "from []" not in said, said
