import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(4096, 6), torch.randn(4096, 1))
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while step < 450:
        for x, y in DataLoader(data, batch_size=32, num_workers=1):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.01)
            if step % 100 == 0:
                print(f"step {step}", flush=True)
            step += 1
