"""`holdfast.backward`: the same step in micro-batches, and no trace of an attempt that failed. On the CPU, memory runs out
because a module says so."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")


def costly_module(rows_at_once: int) -> Any:
    import torch

    class Take(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            if gradient.shape[0] > rows_at_once:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return gradient

    class Costly(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return Take.apply(x)

    return Costly()


def network(rows_at_once: int, *between: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    first, last = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)
    return torch.nn.Sequential(first, torch.nn.ReLU(), costly_module(rows_at_once), *between, last).double()


def train(
    model: Any, rescued: bool, loss_of: Any = None, reduction: str = "mean", steps: int = 50
) -> tuple[Any, list[float]]:
    import torch

    import holdfast

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    random = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(steps):
        x = torch.randn(21, 6, generator=random, dtype=torch.float64)
        y = torch.randint(0, 3, (21,), generator=random)
        optimizer.zero_grad()

        def own(x: Any, y: Any) -> Any:
            return torch.nn.functional.cross_entropy(model(x), y, reduction=reduction)

        if rescued:
            loss = holdfast.backward(model, loss_of or own, x, y, reduction=reduction)
        else:
            loss = own(x, y)
            loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return torch.cat([p.detach().flatten() for p in model.parameters()]), losses


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("rows_at_once", [11, 4, pytest.param(1, marks=pytest.mark.slow)])
def test_fifty_steps_in_pieces_are_fifty_steps(rows_at_once: int, reduction: str) -> None:
    plain, losses = train(network(10**9), rescued=False, reduction=reduction)
    pieces, same_losses = train(network(rows_at_once), rescued=True, reduction=reduction)
    assert float((plain - pieces).norm() / plain.norm()) < 1e-9
    assert same_losses == pytest.approx(losses, rel=1e-9)


def test_a_step_that_fits_is_the_plain_step_bit_for_bit() -> None:
    plain, losses = train(network(10**9), rescued=False)
    ours, same = train(network(10**9), rescued=True)
    assert bool((plain == ours).all()) and losses == same


def test_what_the_user_accumulated_before_is_kept() -> None:
    import torch

    import holdfast

    x, y = torch.randn(8, 6, dtype=torch.float64), torch.randint(0, 3, (8,))
    gradients = []
    for rows in (10**9, 2):
        model = network(rows)

        def loss_of(x: Any, y: Any, model: Any = model) -> Any:
            return torch.nn.functional.cross_entropy(model(x), y)

        for _ in range(2):
            holdfast.backward(model, loss_of, x, y)
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert float((gradients[0] - gradients[1]).norm()) < 1e-12


def test_a_failed_attempt_leaves_buffers_random_state_and_gradients_as_they_were() -> None:
    import torch

    import holdfast

    model = network(0, torch.nn.BatchNorm1d(16).double(), torch.nn.Dropout(0.5))
    x, y = torch.randn(8, 6, dtype=torch.float64), torch.randint(0, 3, (8,))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    with pytest.raises(torch.OutOfMemoryError):
        holdfast.backward(model, lambda x, y: torch.nn.functional.cross_entropy(model(x), y), x, y)
    assert all(bool((value == state[name]).all()) for name, value in model.state_dict().items())
    assert bool((torch.get_rng_state() == random).all())
    assert all(p.grad is None for p in model.parameters())


def test_a_loss_over_the_whole_batch_is_not_split() -> None:
    import torch

    model = network(4)

    def contrastive(x: Any, y: Any) -> Any:
        out = model(x)
        return torch.nn.functional.cross_entropy(out @ out.T, torch.arange(len(out)))

    with pytest.raises(torch.OutOfMemoryError):
        train(model, rescued=True, loss_of=contrastive, steps=1)


def test_what_draws_at_random_is_split_all_the_same_and_another_thread_draws_on() -> None:
    import torch

    model, drawn = network(5), []

    def loss_of(x: Any, y: Any) -> Any:
        other = threading.Thread(target=lambda: drawn.append(torch.randn(4)))
        other.start()
        other.join()
        noisy = x + torch.randn_like(x) * torch.rand(len(x), 1) + torch.empty_like(x).normal_() + torch.normal(x, 0.1)
        hidden = torch.nn.functional.dropout(model(noisy), 0.3)
        flips = torch.where(torch.rand(len(x), 1) < 0.5, hidden, -hidden) * torch.randint(1, 3, (len(x), 1))
        normal = torch.distributions.Normal(flips, 1.0).rsample()
        return torch.nn.functional.cross_entropy(normal, y)

    train(model, True, loss_of, steps=3)
    assert len(drawn) > 3, "more often than there were steps: it was split"
    assert all(float(one.std()) > 0 for one in drawn)


def test_another_error_of_the_users_is_his() -> None:
    import holdfast

    model = network(4)
    with pytest.raises(ZeroDivisionError):
        holdfast.backward(model, lambda: 1 / 0)


def test_the_traceback_of_the_users_own_error_has_no_frame_of_ours() -> None:
    import traceback

    import holdfast

    with pytest.raises(ZeroDivisionError) as raised:
        holdfast.backward(network(4), lambda x: 1 / 0, torch_rows(8))
    files = [frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert files == [__file__, __file__]


def torch_rows(rows: int) -> Any:
    import torch

    return torch.randn(rows, 6, dtype=torch.float64)


def test_a_step_that_fits_copies_no_buffer_but_statistics() -> None:
    import torch

    import holdfast

    class Uncopied(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert func not in {torch.Tensor.clone, torch.clone, torch.Tensor.copy_}, "copied"
            return super().__torch_function__(func, types, args, kwargs or {})

    for rows_at_once in (10**9, 4):
        model = network(rows_at_once, torch.nn.BatchNorm1d(16).double())
        model.register_buffer("table", torch.zeros(5).as_subclass(Uncopied))
        y = torch.randint(0, 3, (8,))
        holdfast.backward(model, lambda x, y, m=model: torch.nn.functional.cross_entropy(m(x), y), torch_rows(8), y)
        assert int(model[3].num_batches_tracked) == 1, "in pieces, too"


def test_a_mean_and_a_sum_of_one_model_are_each_split_as_they_are_said_to_be() -> None:
    import torch

    import holdfast

    x, y = torch_rows(8), torch.arange(8) % 3
    gradients = []
    for rows in (10**9, 2):
        model = network(rows)
        for how in ("mean", "sum", "mean"):
            holdfast.backward(
                model,
                lambda x, y, how=how, model=model: torch.nn.functional.cross_entropy(model(x), y, reduction=how),
                x, y, reduction=how,
            )  # fmt: skip
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert float((gradients[0] - gradients[1]).norm()) < 1e-12


def test_what_is_known_of_a_model_goes_with_it() -> None:
    import gc
    import weakref

    import holdfast

    model = network(2)
    holdfast.backward(model, lambda x, model=model: model(x).mean(), torch_rows(8))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_batch_that_ends_in_an_error_after_some_pieces_leaves_no_gradients() -> None:
    import torch

    import holdfast

    model = network(2)
    calls = []

    def loss_of(x: Any) -> Any:
        calls.append(len(x))
        if len(calls) > 6:  # the whole, three trials, and two pieces or more
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return model(x).mean()

    with pytest.raises(torch.OutOfMemoryError):
        holdfast.backward(model, loss_of, torch_rows(8))
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["backward", pytest.param("keras", marks=pytest.mark.slow)])
def test_in_eight_pieces_the_peak_is_that_of_an_eighth_and_one_copy_of_the_gradients(way: str) -> None:
    bare, pieces = peak(way, 64, 1), peak(way, 512, 8)
    assert [data for kind, data in pieces["told"] if kind == "rescue.k"] and not any(
        kind in {"inside.failed", "rescue.refused"} for kind, _ in pieces["told"]
    )
    assert pieces["peak"] - bare["peak"] <= bare["gradients"] + (64 << 20)


def peak(way: str, rows: int, k: int) -> Any:
    import json
    import os
    import subprocess
    import sys
    from pathlib import Path

    program = Path(__file__).with_name("torch_peak.py")
    # Large tensors are given back to the system when they are freed: the peak is what is in use, and no fragment.
    env = {**os.environ, "PYTHONPATH": str(program.parents[2]), "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, "-W", "ignore", str(program), way, str(rows), str(k)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(300)
def test_keras_on_the_torch_backend_is_rescued_unedited() -> None:
    """One process trains every case; see the program."""
    import json
    import subprocess
    import sys
    from pathlib import Path

    program = Path(__file__).with_name("keras_torch_rescue.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["failed"] == [] and len(found["cases"]) >= 4
    for name, case in found["cases"].items():
        assert case["healthy_equal"], name
        assert case["refusals"] > 0, name
        assert case["apart"] < 1e-5 and case["logs_apart"] < 1e-5, (name, case)
        assert case["iterations"][0] == case["iterations"][1]
    assert found["whole_batch"]["error"] == "OutOfMemoryError", "what may not be split is the user's to hear of"
    assert len(found["whole_batch"]["refused"]) == 1 and "over the whole batch" in found["whole_batch"]["refused"][0]
    assert any("% of a standard deviation apart" in line for line in found["disclosed"])
    assert found["means_apart"] < 1e-6, "statistics are those of the batch, updated once"
    assert found["frozen_copied"] == 0, "a layer that no step changes"
