import os
import signal

import torch
from torch import nn


def main():
    torch.manual_seed(101)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.Adam(model.parameters())
    step = 0
    print("training until Ctrl-C")
    try:
        while True:
            x = torch.randn(64, 32)
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"step {step}: loss {loss.item():.4f}")
            if step == 450:
                os.kill(os.getpid(), signal.SIGINT)  # the person at the keyboard
    except KeyboardInterrupt:
        torch.save(model.state_dict(), "model.pt")
        print(f"saved after {step} steps")


if __name__ == "__main__":
    main()
