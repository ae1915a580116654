import multiprocessing as mp
import time

import numpy as np
import torch
from torch import nn


def produce(batches, count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        batches.put(rng.normal(size=(32, 24)).astype("float32"))
        time.sleep(0.05)
    batches.put(None)


def train(model, batches):
    optimizer = torch.optim.Adam(model.parameters())
    number = 0
    while True:
        batch = batches.get()
        if batch is None:
            break
        x = torch.from_numpy(batch)
        loss = (model(x) - x).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 20 == 0:
            print(f"batch {number}: {loss.item():.3f}", flush=True)
        number += 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    batches = mp.Queue(maxsize=8)
    producer = mp.Process(target=produce, args=(batches, 200), name="augmenter")
    producer.start()
    train(nn.Sequential(nn.Linear(24, 6), nn.Tanh(), nn.Linear(6, 24)), batches)
    producer.join()
