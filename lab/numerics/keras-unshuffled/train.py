import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(30)
rng = np.random.default_rng(30)


def read_folder(classes=5, each=480):
    images, labels = [], []
    for k in range(classes):
        pictures = 0.4 * rng.random((each, 10, 10, 1)).astype("float32")
        pictures[:, 2 * k : 2 * k + 2] += 0.4
        images.append(pictures)
        labels.append(np.full(each, k))
    return np.concatenate(images), np.concatenate(labels)


x_train, y_train = read_folder()
x_test, y_test = read_folder(each=80)
print("images:", x_train.shape, "labels:", y_train.shape)
model = keras.Sequential(
    [
        layers.Input((10, 10, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(5, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    x_train, y_train, epochs=6, batch_size=24, shuffle=False, validation_data=(x_test, y_test), verbose=2
)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"test accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
