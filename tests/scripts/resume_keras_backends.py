"""Fits of Keras on the torch or JAX backend to be killed and resumed, one a kind of data. Nothing in it mentions Holdfast.

Prints one JSON line: {"weights": hash of all weights, "record": hash over the batches in their order, …}.
"""

import hashlib
import json
import os
import sys
import time

BACKEND, KIND = sys.argv[1].split("_", 2)[1:]  # keras_torch_arrays
os.environ["KERAS_BACKEND"] = BACKEND
import keras
import numpy as np

PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.004"))
SAMPLES, BATCH, EPOCHS = 800, 16, int(os.environ.get("EPOCHS", "8"))
if BACKEND == "torch":
    import torch

    torch.set_num_threads(1)
keras.utils.set_random_seed(11)
keras.config.disable_interactive_logging()


class Pace(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = 0

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if not os.path.exists("training"):
            open("training", "w").close()
        time.sleep(PAUSE_S)


@keras.saving.register_keras_serializable()
class Record(keras.layers.Layer):
    """Passes on everything but the first column, which is the sample's number, and chains those numbers."""

    def build(self, shape):
        self.chain = self.add_weight(shape=(), name="chain", initializer="zeros", trainable=False, dtype="int32")

    def call(self, x, training=False):
        if training:
            numbers = keras.ops.cast(keras.ops.round(x[:, 0]), "int32")
            place = keras.ops.arange(1, len(numbers) + 1, dtype="int32")
            self.chain.assign((self.chain.value * 1009 + keras.ops.sum(numbers * place) % 65521 + 17) % 65521)
        return x[:, 1:]


def model(rate=1e-3, **how):
    layers = [
        keras.Input((9,)),
        Record(dtype="float32"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(2, activation="softmax"),
    ]
    made = keras.Sequential(layers)
    made.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"], **how)
    return made


class Shuffled(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y, self.order = x, y, np.arange(len(x))

    def __len__(self):
        return len(self.x) // BATCH

    def __getitem__(self, i):
        rows = self.order[i * BATCH : (i + 1) * BATCH]
        x = self.x[rows].copy()
        x[:, 1:] += np.random.normal(scale=0.1, size=x[:, 1:].shape)
        return x, self.y[rows]

    def on_epoch_end(self):
        np.random.shuffle(self.order)


def batches(x, y):
    while True:
        order = np.random.permutation(len(x))
        for begin in range(0, len(x), BATCH):
            rows = order[begin : begin + BATCH]
            yield x[rows], y[rows]


def train():
    x = np.random.normal(size=(SAMPLES, 9)).astype("float32")
    y = (x[:, 1] + x[:, 2] * x[:, 3] > 0).astype("int64")
    x[:, 0] = np.arange(SAMPLES)
    pace, trained = Pace(), model(**({"steps_per_execution": 3} if KIND == "several" else {}))
    if KIND in ("arrays", "several"):
        validation = (x[:160], y[:160])
        history = trained.fit(x, y, batch_size=BATCH, epochs=EPOCHS, validation_data=validation, callbacks=[pace])
    elif KIND == "loader":
        data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        chance = torch.Generator().manual_seed(5)
        loader = torch.utils.data.DataLoader(data, BATCH, shuffle=True, generator=chance)
        history = trained.fit(loader, epochs=EPOCHS, callbacks=[pace])
    elif KIND == "dataset":
        history = trained.fit(Shuffled(x, y), epochs=EPOCHS, callbacks=[pace])
    elif KIND == "generator":
        steps = len(x) // BATCH
        history = trained.fit(batches(x, y), steps_per_epoch=steps, epochs=EPOCHS, callbacks=[pace])
    elif KIND == "two_fits":
        first = trained.fit(x, y, batch_size=BATCH, epochs=EPOCHS // 2, callbacks=[pace])
        print("between", first.history, trained.evaluate(x, y, verbose=0))
        stopping = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
        slower = keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=0.05)
        callbacks = [pace, stopping, slower]
        history = trained.fit(x, y, batch_size=BATCH, epochs=EPOCHS, validation_split=0.2, callbacks=callbacks)
    else:
        raise SystemExit(f"no kind {KIND}")
    return trained, history, pace


trained, history, pace = train()
print(
    json.dumps(
        {
            "weights": hashlib.sha256(b"".join(w.tobytes() for w in trained.get_weights())).hexdigest(),
            "record": int(trained.layers[0].chain.numpy()),
            "history": history.history,
            "epochs": history.epoch,
            "batches": pace.batches,
            "iterations": int(trained.optimizer.iterations.numpy()),
        }
    )
)
