import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(144)
rng = np.random.default_rng(144)

x = rng.normal(size=(3000, 12)).astype("float32")
stars = np.clip(np.round(3 + x[:, 0] + 0.5 * x[:, 1] + 0.5 * rng.normal(size=3000)), 1, 5).astype("float32")
model = keras.Sequential([keras.Input((12,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
model.fit(x, stars, epochs=8, batch_size=40, validation_split=0.2, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
