import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(76)
rng = np.random.default_rng(76)
centers = rng.normal(size=(6, 12))
labels = rng.integers(0, 6, 2400)
x = (centers[labels] + 0.8 * rng.normal(size=(2400, 12))).astype("float32")

init = keras.initializers.RandomNormal(mean=0.0, stddev=0.3)
print("x:", x.shape)
model = keras.Sequential()
model.add(keras.Input((12,)))
model.add(keras.layers.Dense(16, activation="tanh", kernel_initializer=init))
model.add(keras.layers.Dense(16, activation="tanh", kernel_initializer=init))
model.add(keras.layers.Dense(16, activation="tanh", kernel_initializer=init))
model.add(keras.layers.Dense(6, activation="softmax", kernel_initializer=init))
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
history = model.fit(x, labels, epochs=10, batch_size=40, validation_split=0.2, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"val accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
