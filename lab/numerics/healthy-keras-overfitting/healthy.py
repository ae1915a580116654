import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(146)
rng = np.random.default_rng(146)

x = rng.normal(size=(300, 20)).astype("float32")
y = (x[:, 0] + rng.normal(size=300) > 0).astype("float32")
model = keras.Sequential(
    [
        keras.Input((20,)),
        layers.Dense(128, activation="relu"),
        layers.Dense(128, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x[:200], y[:200], epochs=40, batch_size=10, validation_data=(x[200:], y[200:]), verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
