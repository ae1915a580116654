"""Trains from memory or from a stream, and prints what a step took: `stream_steps.py keras|torch memory|stream FILE BATCH SECONDS`.

FILE.npy holds rows of float32, FILE.labels.npy a class for each. `memory` trains on its first rows, as many as fit.
"""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np

FRAMEWORK, WAY, FILE, BATCH, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
HELD_BYTES = 128 << 20  # of the data that is trained on from memory
CLASSES, UNITS, WARM_UP = 10, 384, 20
LABELS = FILE.removesuffix(".npy") + ".labels.npy"


class Clock:
    """Of the steps after the first ones."""

    def __init__(self) -> None:
        self.steps, self.began, self.lasted = 0, 0.0, 0.0
        self.cpu_began = self.cpu_s = 0.0

    def step(self) -> bool:
        """True when it is over."""
        self.steps += 1
        moment = time.perf_counter()
        if self.steps == WARM_UP:
            self.began, self.cpu_began = moment, time.process_time()
        self.lasted = moment - self.began if self.began else 0.0
        self.cpu_s = time.process_time() - self.cpu_began
        return self.lasted > SECONDS


def streamed():
    import holdfast.data  # noqa: PLC0415

    return holdfast.data.open(FILE, labels=LABELS, batch=BATCH, shuffle=True, seed=1, budget="128M")


def held():
    rows = np.load(FILE, mmap_mode="r")
    count = HELD_BYTES // rows[0].nbytes
    return np.array(rows[:count]), np.array(np.load(LABELS)[:count])


def keras_steps(clock: Clock) -> None:
    import keras  # noqa: PLC0415

    width = np.load(FILE, mmap_mode="r").shape[1]
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(UNITS, "relu"), keras.layers.Dense(CLASSES)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = clock.step()

    while clock.lasted <= SECONDS:
        if WAY == "stream":
            model.fit(streamed().tensorflow(), epochs=1000, verbose=0, callbacks=[Stop()])
        else:
            x, y = held()
            model.fit(x, y, batch_size=BATCH, epochs=1000, verbose=0, callbacks=[Stop()])


def torch_batches():
    import torch  # noqa: PLC0415

    if WAY == "stream":
        loader = torch.utils.data.DataLoader(streamed().torch(), batch_size=None)
        while True:
            yield from loader
    x, y = (torch.from_numpy(one) for one in held())
    while True:
        order = torch.randperm(len(x))
        for at in range(0, len(x) - BATCH + 1, BATCH):
            rows = order[at : at + BATCH]
            yield x[rows], y[rows]


def torch_steps(clock: Clock) -> None:
    import torch  # noqa: PLC0415

    width = np.load(FILE, mmap_mode="r").shape[1]
    model = torch.nn.Sequential(torch.nn.Linear(width, UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in torch_batches():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if clock.step():
            return


clock = Clock()
{"keras": keras_steps, "torch": torch_steps}[FRAMEWORK](clock)
steps = clock.steps - WARM_UP
print(json.dumps({"step_s": clock.lasted / steps, "cpu_s": clock.cpu_s / steps}), file=sys.stderr)
