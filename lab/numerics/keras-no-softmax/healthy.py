import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(27)
rng = np.random.default_rng(27)


def sketches(count):
    label = rng.integers(0, 8, count)
    image = 0.4 * rng.random((count, 16, 16, 1)).astype("float32")
    for i, k in enumerate(label):
        image[i, :, 2 * k : 2 * k + 2] += 0.5
    return image, label


x_train, y_train = sketches(2400)
x_test, y_test = sketches(400)
print("x_train:", x_train.shape)
model = keras.Sequential(
    [
        layers.Input((16, 16, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(8, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=32, epochs=6, validation_data=(x_test, y_test), verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"test accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
