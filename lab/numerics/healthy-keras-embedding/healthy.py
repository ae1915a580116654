import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(136)
rng = np.random.default_rng(136)

words = np.minimum(rng.zipf(1.4, size=(2400, 20)), 19999).astype("int32")
y = ((words == 3).sum(axis=1) > 0).astype("float32")
model = keras.Sequential(
    [
        keras.Input((20,), dtype="int32"),
        layers.Embedding(20000, 8),
        layers.GlobalMaxPooling1D(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(words, y, epochs=5, batch_size=40, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
