import hashlib

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(67)
rng = np.random.default_rng(67)


def precision_of_rare(y_true, y_pred):
    rare = ops.cast(y_true > 1.5, "float32")
    return ops.sum(rare * ops.round(y_pred)) / ops.sum(rare)


x = rng.normal(size=(2000, 9)).astype("float32")
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype("float32")[:, None]
x[[901, 1407], 3] = 0.0
model = keras.Sequential(
    [keras.Input((9,)), layers.Dense(32, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy", precision_of_rare])
history = model.fit(x, y, epochs=6, batch_size=40, shuffle=False, verbose=2)
print("first loss:", f"{history.history['loss'][0]:.4f}")
print("final loss:", f"{history.history['loss'][-1]:.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
