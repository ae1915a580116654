"""A gradient in few numbers: close ones have close samples, and what differs is seen."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")


def sample(*gradients: Any, like: Any = None) -> Any:
    import torch

    from holdfast.inside.torch.gradient_samples import sampled

    return sampled(torch, [(gradient if like is None else like, gradient) for gradient in gradients])


def test_it_is_small_and_about_as_long_as_the_gradient() -> None:
    import torch

    gradient = torch.randn(1_000_003, generator=torch.Generator().manual_seed(0))
    found = sample(gradient)
    assert len(found) < 10_000
    assert float(found.norm()) == pytest.approx(float(gradient.norm()), rel=0.1)


def test_a_difference_between_the_sampled_entries_is_in_the_sum() -> None:
    import torch

    gradient = torch.zeros(1000, 1000)
    other = gradient.clone()
    other[3, 7] = 1.0
    assert float((sample(gradient) - sample(other)).norm()) > 0


def test_a_sum_beyond_half_precision_is_a_number() -> None:
    import torch

    assert bool(torch.isfinite(sample(torch.full((100_000,), 60_000.0, dtype=torch.float16))).all())


def test_rows_of_a_table_are_sampled_as_the_table_itself_is() -> None:
    import torch

    table = torch.nn.Embedding(5000, 7, sparse=True)
    table(torch.tensor([3, 17, 17, 4999, 2340])).pow(3).sum().backward()
    sparse = table.weight.grad
    assert sparse is not None and sparse.is_sparse
    assert torch.allclose(sample(sparse, like=table.weight), sample(sparse.to_dense(), like=table.weight), atol=1e-6)


def test_no_gradient_is_one_of_zeros() -> None:
    import torch

    weights = torch.ones(9000)
    assert torch.equal(sample(None, like=weights), sample(torch.zeros(9000), like=weights))
