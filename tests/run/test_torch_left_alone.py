"""Training on PyTorch that is as it would be without Holdfast, and of which nothing is said."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.workplace import Workplace

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")

SCRIPTED_UNDER_CHECKPOINTING = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(3)
    torch.set_num_threads(1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 2)
            self.scripted = torch.jit.script(nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
            self.dropout = nn.Dropout(0.2)

        def again(self, x):
            return self.dropout(self.scripted(x))

        def forward(self, x):
            return self.last(checkpoint(self.again, torch.relu(self.first(x)), use_reentrant=False))

    net = Net()
    net(torch.zeros(2, 6))
    optimizer = torch.optim.Adagrad(net.parameters(), 0.02)
    for step in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,))).backward()
        optimizer.step()
    print(sum(p.double().sum().item() for p in net.parameters()))
"""
OF_FUNCTIONS = """
    import torch
    from torch import nn
    from torch.func import functional_call, grad_and_value

    torch.manual_seed(3)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    weights = {name: value.detach() for name, value in net.named_parameters()}
    step = grad_and_value(lambda weights, x, y: ((functional_call(net, weights, (x,)) - y) ** 2).mean())
    for _ in range(40):
        x = torch.randn(16, 6)
        gradients, loss = step(weights, x, x.sum(1, keepdim=True))
        weights = {name: value - 0.01 * gradients[name] for name, value in weights.items()}
    print(loss.item(), sum(value.double().sum().item() for value in weights.values()))
"""


@pytest.mark.parametrize("source", [SCRIPTED_UNDER_CHECKPOINTING, OF_FUNCTIONS], ids=["scripted", "functions"])
def test_it_trains_as_ever_and_nothing_is_said(workplace: Workplace, source: str) -> None:
    script = workplace.script(source)
    watched, bare = workplace.run(script), workplace.run(script, "--policy", "observe")
    assert watched.returncode == 0, watched.stderr
    assert (watched.stdout, watched.stderr.count(b"holdfast:")) == (bare.stdout, 0)
