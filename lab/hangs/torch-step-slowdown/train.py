"""A small regression; once it runs well, a thread keeps the progress file up to date."""

import json
import threading
import time

import torch

BUSY_FROM_S = 40

torch.manual_seed(3)
torch.set_num_threads(1)
features = torch.randn(40_000, 64)
target = features[:, :8].sum(1, keepdim=True) + 0.1 * torch.randn(40_000, 1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(features, target), batch_size=512, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
progress = {"step": 0, "loss": 0.0}


def report() -> None:
    while True:
        written = json.dumps([progress] * 20_000)
        progress["bytes"] = len(written)


began, reporting, step = time.monotonic(), False, 0
print("training", flush=True)
while time.monotonic() - began < 100:
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        progress.update(step=step, loss=loss.item())
        if not reporting and time.monotonic() - began > BUSY_FROM_S:
            reporting = True
            threading.Thread(target=report, daemon=True).start()
        if time.monotonic() - began > 100:
            break
print(f"step {step}, loss {loss.item():.4f}", flush=True)
