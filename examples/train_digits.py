"""A small Keras training, as people write them. It ends in an everyday mistake; `holdfast why` names it."""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

rng = np.random.default_rng(0)
images = rng.random((4000, 28, 28, 1), dtype="float32")
labels = (images[:, :14].mean(axis=(1, 2, 3)) > images[:, 14:].mean(axis=(1, 2, 3))).astype("int64")

model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(2, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(images, labels, batch_size=128, epochs=3, validation_split=0.1)

with open("results/digits/history.json", "w") as file:
    json.dump(history.history, file)
