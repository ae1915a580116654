import concurrent.futures
import queue
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

waiting = queue.Queue()
for number in range(12):
    threading.Thread(target=waiting.get, name=f"sink-{number}", daemon=True).start()
gate = threading.Lock()
gate.acquire()
threading.Thread(target=gate.acquire, daemon=True, name="shutdown-hook").start()


class Slow(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.full((4,), i / 60)


if __name__ == "__main__":
    torch.set_num_threads(1)
    pool = concurrent.futures.ThreadPoolExecutor(4)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(10):
        for x in DataLoader(Slow(), batch_size=4, num_workers=2):
            loss = (model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.2)  # the rest of the step
        pool.submit(print, f"epoch {epoch}", flush=True)
    pool.shutdown()
