import time

import keras
import numpy as np


class Volumes(keras.utils.PyDataset):
    """Whole volumes, augmented in eight ways: slow, and only for validation."""

    def __len__(self):
        return 25

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            volume = rng.normal(size=(64, 10))
            volume = np.flip(volume, index % 2)
        return volume.astype("float32"), volume.sum(1).astype("float32")


x = np.random.default_rng(0).normal(size=(1600, 10)).astype("float32")
model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.sum(1), batch_size=32, epochs=2, validation_data=Volumes(), verbose=2)
