import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
num_classes = 10


def make_images(count):
    labels = rng.integers(0, num_classes, count)
    images = 0.3 * rng.random((count, 14, 14, 1)).astype("float32")
    for i, label in enumerate(labels):
        images[i, label : label + 4, label : label + 4] += 0.6
    return images, keras.utils.to_categorical(labels, num_classes)


x_train, y_train = make_images(2400)
x_test, y_test = make_images(600)
print("x_train shape:", x_train.shape)

model = keras.Sequential(
    [
        keras.Input(shape=(14, 14, 1)),
        layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.Adam(learning_rate=1.0), metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=32, epochs=6, verbose=2, validation_data=(x_test, y_test))
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"test accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
