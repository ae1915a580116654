import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LOG_LOCK = threading.Lock()
LINES = []


def note(text):
    with LOG_LOCK:
        LINES.append(text)


def heartbeat():
    """Keeps the log on a shared disk fresh; writing takes a while there."""
    while True:
        time.sleep(0.05)
        LOG_LOCK.acquire()
        time.sleep(0.4)
        LOG_LOCK.release()


class Sentences(Dataset):
    def __init__(self, count=256):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i % 100 == 0:
            note(f"sentence {i}")
        generator = torch.Generator().manual_seed(i)
        tokens = torch.randint(0, 100, (12,), generator=generator)
        return tokens, tokens.sum() % 2


def main():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.EmbeddingBag(100, 16), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    thread = threading.Thread(target=heartbeat, daemon=True, name="heartbeat")
    for epoch in range(3):
        loader = DataLoader(Sentences(), batch_size=16, num_workers=2, multiprocessing_context="spawn")
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        if epoch == 0:
            thread.start()
            time.sleep(0.2)


if __name__ == "__main__":
    main()
