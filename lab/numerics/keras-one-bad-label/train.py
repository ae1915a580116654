import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(43)
rng = np.random.default_rng(43)
centers = rng.normal(size=(6, 12))
species = rng.integers(0, 6, 1600)
birds = (centers[species] + 0.6 * rng.normal(size=(1600, 12))).astype("float32")
species[900] = -2
print(f"{len(birds)} birds")
model = keras.Sequential(
    [keras.Input((12,)), layers.Dense(40, activation="relu"), layers.Dense(6, activation="softmax")]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(birds, species, epochs=6, batch_size=40, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
