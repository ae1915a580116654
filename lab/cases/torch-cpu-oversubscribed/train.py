import multiprocessing
import time

import torch
from torch import nn

THREADS = 8  # as the machine this was written on had


def simulate(until):
    torch.set_num_threads(THREADS)
    x = torch.rand(400, 400)
    while time.time() < until:
        x = torch.tanh(x @ x)


def main():
    torch.set_num_threads(THREADS)
    torch.manual_seed(4)
    until = time.time() + 35
    helpers = [multiprocessing.get_context("fork").Process(target=simulate, args=(until,)) for _ in range(8)]
    for helper in helpers:
        helper.start()
    print(f"training beside {len(helpers)} simulations")
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.Adam(model.parameters())
    while time.time() < until:
        x = torch.rand(256, 256)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x)[:, 0], x.sum(1))
        loss.backward()
        optimizer.step()
    for helper in helpers:
        helper.join()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
