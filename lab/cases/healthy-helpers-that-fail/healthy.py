import multiprocessing
import os
import signal
import subprocess
import time

import torch
from torch import nn


def version():
    """The commit of the code, where there is one."""
    asked = subprocess.run(["git", "describe", "--always"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "no version"


def try_out(number):
    """A candidate that may take too long or break; each has a process of its own."""
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 2:
        raise SystemExit(3)
    time.sleep(30 if number == 3 else 0.1)


def main():
    torch.manual_seed(113)
    print(f"version: {version()}")
    candidates = [multiprocessing.Process(target=try_out, args=(number,)) for number in range(4)]
    for candidate in candidates:
        candidate.start()
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 24))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(300):
        x = torch.randn(64, 24)
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for candidate in candidates:
        candidate.join(timeout=1)
        if candidate.is_alive():
            candidate.terminate()
            candidate.join()
    print(f"candidates ended with {[candidate.exitcode for candidate in candidates]}")
    print(f"trained with loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
