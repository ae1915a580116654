import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(131)
rng = np.random.default_rng(131)

x = rng.normal(size=(6000, 8)).astype("float32")
risk = x[:, 0] + x[:, 1] + 0.3 * rng.normal(size=6000)
y = (risk > np.quantile(risk, 0.99)).astype("float32")
model = keras.Sequential(
    [keras.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc")])
model.fit(x, y, epochs=6, batch_size=60, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
