"""Which losses autograd's graph holds, and what went into them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")


def test_each_term_of_a_loss_is_found_with_what_goes_into_it() -> None:
    import torch
    import torch.nn.functional as F

    from holdfast.inside.torch.numerics.loss_graph import activation_of, losses_in

    hidden = torch.nn.Linear(4, 8)(torch.randn(6, 4))
    probabilities = torch.nn.Linear(8, 3)(hidden).softmax(1)
    squares = F.mse_loss(torch.nn.Linear(8, 1)(hidden), torch.randn(6, 1))
    loss = squares + 0.3 * F.cross_entropy(probabilities, torch.randint(0, 3, (6,)))
    found = {one.name: one for one in losses_in(loss)}
    assert set(found) == {"mse_loss", "cross_entropy"}
    assert [activation_of(one.below) for one in (found["mse_loss"], found["cross_entropy"])] == ["linear", "softmax"]
    assert found["cross_entropy"].classes == 3


def test_a_cross_entropy_of_one_vector_has_logarithms_of_one_axis() -> None:
    import torch
    import torch.nn.functional as F

    from holdfast.inside.torch.numerics.loss_graph import found_in

    outputs = torch.nn.Linear(4, 1)(torch.randn(6, 4)).squeeze()
    found = found_in(F.cross_entropy(outputs, torch.randint(0, 2, (6,)).float()))
    assert found is not None and found.log_probabilities.dim() == 1


def test_a_divergence_is_told_from_a_product_with_shares() -> None:
    import torch
    import torch.nn.functional as F

    from holdfast.inside.torch.numerics.loss_graph import activation_of, found_in

    logits, shares = torch.nn.Linear(4, 3)(torch.randn(6, 4)), torch.rand(6, 3).softmax(1)
    for reduction in ("batchmean", "sum"):
        found = found_in(F.kl_div(logits.softmax(1), shares, reduction=reduction) * 4.0)
        assert found is not None and found.family == "kl" and float(found.output.detach().max()) > 0.0
    right = found_in(F.kl_div(logits.log_softmax(1), shares, reduction="batchmean"))
    assert right is not None and right.family == "kl" and float(right.output.detach().max()) <= 0.0
    taken = found_in(F.kl_div(logits.softmax(1).log(), shares, reduction="batchmean"))
    assert taken is not None and activation_of(taken.below) is None
    assert found_in((1.0 - (shares * logits.softmax(1)).sum(1)).mean()) is None
    assert found_in((1.0 - F.one_hot(torch.arange(6) % 3, 3).float() * logits.softmax(1)).mean()) is None


def test_what_goes_into_a_loss_of_alignments_is_known() -> None:
    import torch

    from holdfast.inside.torch.numerics.loss_graph import found_in

    scores = torch.nn.Linear(4, 5)(torch.randn(8, 2, 4))
    lengths = torch.full((2,), 8), torch.full((2,), 2)
    found = found_in(torch.nn.CTCLoss()(scores, torch.ones(2, 2, dtype=torch.long), *lengths))
    assert found is not None and found.family == "ctc" and found.output.shape == (8, 2, 5)


def test_an_infinity_that_a_root_hides_is_found_in_half_precision_alone() -> None:
    import torch

    from holdfast.inside.torch.numerics.hidden_overflow import hidden_overflow

    layer = torch.nn.Linear(4, 4)
    x = torch.full((6, 4), 400.0)

    def loss(dtype: torch.dtype) -> torch.Tensor:
        hidden = x.to(dtype) + layer.to(dtype)(x.to(dtype) / 400)
        return (hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True))).float().pow(2).mean()

    assert torch.isfinite(loss(torch.float16).detach())
    assert hidden_overflow(torch, loss(torch.float16)) == "rsqrt"
    assert hidden_overflow(torch, loss(torch.float32)) is None
    masked = (layer.half()(x.half() / 400).masked_fill(torch.eye(6, 4) > 0, -torch.inf)).softmax(1)
    assert hidden_overflow(torch, masked.float().sum()) is None
