import numpy as np
import torch
from torch import nn

ROWS, WIDTH = 300_000, 256


def write(path):
    table = np.memmap(path, "float32", "w+", shape=(ROWS, WIDTH))
    for start in range(0, ROWS, 10_000):
        table[start : start + 10_000] = 1
    table.flush()


def main():
    torch.set_num_threads(1)
    write("tokens.bin")
    tokens = np.memmap("tokens.bin", "float32", "r", shape=(ROWS, WIDTH))
    print(f"{tokens.size} tokens", flush=True)
    model = nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for start in range(0, ROWS, 300):
        loss = model(torch.from_numpy(np.array(tokens[start : start + 300]))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
