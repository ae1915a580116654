import multiprocessing as mp
import time

import torch
from torch import nn


def rebuild(lock, begun):
    with lock:
        begun.set()
        time.sleep(32)  # the index is rebuilt on the side


if __name__ == "__main__":
    torch.set_num_threads(1)
    lock, begun = mp.Lock(), mp.Event()
    model = nn.Linear(30, 30)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(300):
        x = torch.randn(16, 30)
        loss = (model(x) - x).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
        if step == 150:
            helper = mp.Process(target=rebuild, args=(lock, begun))
            helper.start()
            begun.wait()
        if step == 151:
            with lock:
                print("both are through", flush=True)
            helper.join()
