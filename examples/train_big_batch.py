"""A Keras training with a batch that is too big for 1 GiB of memory; nothing in it knows of Holdfast."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
labels = rng.integers(0, 4, 4096)
images = rng.random((4096, 48, 48, 1), dtype="float32") / 2
for image, label in zip(images, labels, strict=True):  # a bright square in one of the four corners
    top, left = divmod(int(label), 2)
    image[top * 24 + 8 : top * 24 + 16, left * 24 + 8 : left * 24 + 16] += 0.5

model = keras.Sequential(
    [
        keras.Input((48, 48, 1)),
        keras.layers.Conv2D(16, 3, activation="relu", padding="same"),
        keras.layers.Conv2D(16, 3, activation="relu", padding="same"),
        keras.layers.MaxPooling2D(4),
        keras.layers.Flatten(),
        keras.layers.Dense(4),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
model.fit(images, labels, batch_size=2048, epochs=4)
