import copy
import threading
import time

import torch
from torch import nn

FROM_STEP = 200
STEPS = 700


class Guarded(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.lock = threading.RLock()

    def forward(self, x):
        return self.net(x)


def keep_average(model, average, begin):
    """Exponential moving average, off the training thread."""
    begin.wait()
    while True:
        average.lock.acquire()
        time.sleep(0.02)
        with model.lock:
            with torch.no_grad():
                for kept, now in zip(average.net.parameters(), model.net.parameters()):
                    kept.lerp_(now, 0.01)
        average.lock.release()


def swap_in(model, average):
    """Trains on from the average."""
    model.lock.acquire()
    time.sleep(0.01)
    with average.lock:
        model.net.load_state_dict(average.net.state_dict())
    model.lock.release()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 2))
    model = Guarded(net)
    average = Guarded(copy.deepcopy(net))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = threading.Event()
    threading.Thread(target=keep_average, args=(model, average, begin), daemon=True, name="ema").start()
    for step in range(STEPS):
        x = torch.randn(64, 20)
        loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
        if step == FROM_STEP:
            print("averaging from here on", flush=True)
            begin.set()
        if step > FROM_STEP and step % 20 == 0:
            swap_in(model, average)


if __name__ == "__main__":
    main()
