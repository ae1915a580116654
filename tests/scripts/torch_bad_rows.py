"""A loop with a row that is NaN in each epoch; with `kill` it kills itself once, after the first of them."""

import hashlib
import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(1200, 8)
    y = x @ torch.randn(8, 1)
    x[703, 3] = float("nan")
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    steps = 0
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            steps += 1
            time.sleep(0.03)
            if steps == 100 and "kill" in sys.argv and not os.path.exists("killed"):
                with open("killed", "w"):
                    os.kill(os.getpid(), signal.SIGKILL)
    print("weights:", hashlib.md5(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())


if __name__ == "__main__":
    main()
