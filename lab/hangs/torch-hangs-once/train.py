import os
import time

import torch
from torch import nn


def wait_for(path, limit):
    ready = False
    while not ready:
        ready = os.path.exists(path) and os.path.getsize(path) > limit


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 10))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(8):
        for _ in range(100):
            x = torch.randn(32, 10)
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.005)
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
        if epoch == 5 and not os.path.exists("marks.bin"):
            with open("marks.bin", "wb") as marks:
                marks.write(bytes(100))
            wait_for("marks.bin", limit=100)
    print("trained to the end")


if __name__ == "__main__":
    main()
