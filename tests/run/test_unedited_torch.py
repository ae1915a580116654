"""A PyTorch script that knows nothing of Holdfast is killed twice under `holdfast run` and ends with the weights it would have had."""

from __future__ import annotations

import subprocess

import pytest

from tests.workplace import Workplace

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

SCRIPT = """
    import hashlib, os, sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(400, 10)
    y = x.sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = []
    for epoch in range(5):
        running = 0.0
        for i, (a, b) in enumerate(loader):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            optimizer.step()
            running += loss.item()
            time.sleep(0.02)
            if "dies" in sys.argv and (epoch, i) in ((1, 30), (3, 20)) and not os.path.exists(f"died-{epoch}"):
                open(f"died-{epoch}", "w").close()
                os.kill(os.getpid(), 9)
        history.append(running / len(loader))
        print("epoch", epoch, flush=True)
    print(hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.state_dict().values())).hexdigest(), history)
"""


def test_killed_twice_it_ends_as_if_nothing_had_happened(workplace: Workplace) -> None:
    command = workplace.script(SCRIPT)
    undisturbed = subprocess.run(command, cwd=workplace.path, capture_output=True, text=True, check=True).stdout
    done = workplace.run([*command, "dies"], "--checkpoint", "0.3")
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode()
    assert said.splitlines()[-1] == undisturbed.splitlines()[-1]
    assert said == undisturbed, "each epoch ended once: nothing began from zero"
    assert workplace.why()["outcome"] == "recovered"
