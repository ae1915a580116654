"""PyTorch loops on a card as people write them, to be killed and gone on with. `resume_torch_gpu.py KIND STEPS RESULT.pt`

Each step's number and the process's are appended to STEPS. On a machine without a card they run on the CPU.
"""

import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

kind, steps, result = sys.argv[1:]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
EPOCHS, BATCH = 6, 64
x, y = torch.randn(2560, 32), torch.randint(0, 5, (2560,))


def network():
    hidden = [one for _ in range(3) for one in (nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.2))]
    return nn.Sequential(nn.Linear(32, 256), *hidden, nn.Linear(256, 5)).to(device)


def note():
    time.sleep(0.02)
    with open(steps, "a") as written:
        written.write(f"{os.getpid()}\n")


def plain(workers=0):
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True, num_workers=workers, pin_memory=True)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for inputs, labels in loader:
            inputs, labels = inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            note()
    return model


def mixed_precision():
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, init_scale=2.0**24, growth_interval=20)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=EPOCHS * len(loader))
    for epoch in range(EPOCHS):
        for batch, (inputs, labels) in enumerate(loader):
            with torch.autocast(device.type, dtype=torch.float16 if device.type == "cuda" else torch.bfloat16):
                loss = F.cross_entropy(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            note()
    return model


def accumulation_and_validation():
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    best, history = float("inf"), []
    for epoch in range(EPOCHS):
        model.train()
        for i, (inputs, labels) in enumerate(loader):
            loss = F.cross_entropy(model(inputs.to(device)), labels.to(device)) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
            note()
        model.eval()
        with torch.no_grad():
            total = sum(F.cross_entropy(model(a.to(device)), b.to(device)).item() for a, b in loader)
        history.append(total)
        scheduler.step(total)
        best = min(best, total)
    return model


def noise_on_the_card():
    """Data on the card, and random numbers drawn there."""
    inputs, labels, model = x.to(device), y.to(device), network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(inputs), device=device)
        for begin in range(0, len(inputs), BATCH):
            rows = order[begin : begin + BATCH]
            noisy = inputs[rows] + 0.1 * torch.randn(len(rows), 32, device=device)
            optimizer.zero_grad()
            F.cross_entropy(model(noisy), labels[rows]).backward()
            optimizer.step()
            note()
    return model


KINDS = {
    "plain": plain,
    "workers": lambda: plain(2),
    "mixed_precision": mixed_precision,
    "accumulation_and_validation": accumulation_and_validation,
    "noise_on_the_card": noise_on_the_card,
}
if __name__ == "__main__":
    trained = KINDS[kind]()
    torch.save({name: value.cpu() for name, value in trained.state_dict().items()}, result)
