import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(148)
rng = np.random.default_rng(148)

x = rng.normal(size=(2400, 16)).astype("float32")
directions = rng.normal(size=(16, 12))
y = (x @ directions / 4 > 1.6).astype("float32")
model = keras.Sequential(
    [keras.Input((16,)), layers.Dense(48, activation="relu"), layers.Dense(12, activation="sigmoid")]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["binary_accuracy"])
model.fit(x, y, epochs=8, batch_size=40, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
