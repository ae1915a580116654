"""A loop of one's own around train_on_batch, with test_on_batch now and then."""

import hashlib
import json

import keras
import numpy as np

keras.utils.set_random_seed(4)

x = np.random.normal(size=(1600, 24)).astype("float32")
y = np.random.randint(0, 3, size=1600)

model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

losses = []
for epoch in range(10):
    for start in range(0, 1600, 32):
        losses.append(float(model.train_on_batch(x[start : start + 32], y[start : start + 32])))
    model.test_on_batch(x[:64], y[:64])
    print("epoch", epoch, "%.6f" % losses[-1])

digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
report = {"steps": len(losses), "epochs": None, "losses": losses, "batch_shape": [32, 24]}
print(json.dumps({**report, "wait_share": None, "weights": digest}))
