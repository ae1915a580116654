"""A generator that is slower than the model: nearly everything is waiting. It ends before steps_per_epoch is reached."""

import hashlib
import json
import time

import keras
import numpy as np

keras.utils.set_random_seed(5)


def batches():
    random = np.random.RandomState(0)
    for _ in range(150):
        time.sleep(0.02)
        x = random.normal(size=(32, 8, 8, 1)).astype("float32")
        yield x, x.mean(axis=(1, 2, 3))


model = keras.Sequential([keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")

losses = []


class Count(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        losses.append(logs["loss"])


model.fit(batches(), steps_per_epoch=100, epochs=3, callbacks=[Count()], verbose=0)
print("steps", len(losses))

digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
report = {"steps": len(losses), "epochs": 3, "losses": losses, "batch_shape": [32, 8, 8, 1]}
print(json.dumps({**report, "wait_share": None, "weights": digest}))
