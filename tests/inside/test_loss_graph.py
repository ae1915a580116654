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
