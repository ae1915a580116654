"""Loops of one's own to be killed and resumed, kept by `holdfast.keep`. Prints one JSON line, as resume_kinds.py does."""

import hashlib
import json
import os
import random
import sys
import time

import numpy as np

KIND = sys.argv[1]
SAMPLES, BATCH, EPOCHS = 800, 16, int(os.environ.get("EPOCHS", "8"))
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
random.seed(4)
np.random.seed(4)


def paced():
    if not os.path.exists("training"):
        open("training", "w").close()
    time.sleep(PAUSE_S)


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def with_torch():
    import torch

    import holdfast

    torch.manual_seed(4)
    torch.set_num_threads(1)
    x, y = torch.randn(SAMPLES, 8), torch.randn(SAMPLES, 1)

    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return SAMPLES

        def __getitem__(self, i):
            return i, x[i] + 0.1 * torch.randn(8) + float(np.random.normal(scale=0.01)), y[i]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(8, 32),
                torch.nn.ReLU(),
                torch.nn.Dropout(0.2),
                torch.nn.BatchNorm1d(32),
                torch.nn.Linear(32, 1),
            )
            self.register_buffer("uses", torch.zeros(SAMPLES, dtype=torch.int64))
            self.register_buffer("chain", torch.zeros((), dtype=torch.int64))

        def forward(self, numbers, x):
            self.uses[numbers] += 1
            self.chain.copy_(
                (self.chain * 1000003 + (numbers * torch.arange(1, len(numbers) + 1)).sum() + 17) % (2**31 - 1)
            )
            return self.layers(x)

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    workers = 2 if KIND == "torch_workers" else 0
    loader = torch.utils.data.DataLoader(Noisy(), BATCH, shuffle=True, num_workers=workers)
    keep = holdfast.keep(model=model, optimizer=optimizer, scheduler=scheduler, losses=[])

    def train(batch):
        numbers, inputs, targets = batch
        optimizer.zero_grad()
        loss = ((model(numbers, inputs) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        paced()
        return float(loss.detach())

    if KIND == "torch_nested":
        for _ in keep.epochs(EPOCHS):
            total = 0.0
            for batch in keep.batches(loader):
                total = train(batch)
            keep.update(losses=[*keep["losses"], total])
            scheduler.step()
    else:
        for _, batch in keep.batches(loader, EPOCHS):
            train(batch)
    uses, times = np.unique(model.uses.numpy(), return_counts=True)
    return {
        "weights": digest([value.numpy() for value in model.state_dict().values()]),
        "record": int(model.chain),
        "uses": {int(use): int(count) for use, count in zip(uses, times)},
        "history": keep["losses"],
        "batches": keep.step,
    }


def with_jax():
    import jax
    import jax.numpy as jnp

    import holdfast

    chance = np.random.default_rng(3)
    x, y = chance.normal(size=(SAMPLES, 8)).astype("float32"), chance.normal(size=(SAMPLES, 1)).astype("float32")
    params = {"w": jnp.zeros((8, 1)), "b": jnp.zeros((1,))}
    key = jax.random.key_data(jax.random.key(0))

    @jax.jit
    def step(params, key, x, y):
        key, noise = jax.random.split(jax.random.wrap_key_data(key))

        def loss(p):
            return jnp.mean((x @ p["w"] + p["b"] + 0.1 * jax.random.normal(noise, y.shape) - y) ** 2)

        gradients = jax.grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients), jax.random.key_data(key)

    class Shuffled:
        """A new order each time it is gone through."""

        def __iter__(self):
            order = np.random.permutation(SAMPLES)
            for i in range(0, SAMPLES, BATCH):
                yield order[i : i + BATCH]

    keep = holdfast.keep(params=params, key=key, chain=17)
    for _, rows in keep.batches(Shuffled(), EPOCHS):
        params, key = step(keep["params"], keep["key"], x[rows], y[rows])
        chain = (keep["chain"] * 1000003 + int((rows * np.arange(1, len(rows) + 1)).sum())) % (2**31 - 1)
        keep.update(params=params, key=key, chain=chain)
        holdfast.step()
        paced()
    return {
        "weights": digest([np.asarray(keep["params"]["w"]), np.asarray(keep["params"]["b"]), np.asarray(keep["key"])]),
        "record": keep["chain"],
        "batches": keep.step,
    }


if __name__ == "__main__":
    print(json.dumps(with_jax() if KIND == "jax" else with_torch()))
