import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
centers = 2 * rng.normal(size=(4, 12))
labels = rng.integers(0, 4, 2400)
x = (centers[labels] + rng.normal(size=(2400, 12))).astype("float32")

activation = "relu"
print("x:", x.shape)
model = keras.Sequential([keras.Input((12,))])
for i in range(12):
    model.add(keras.layers.Dense(24, activation=activation, name=f"hidden_{i + 1}"))
model.add(keras.layers.Dense(4, activation="softmax", name="output"))
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    x[:2000], labels[:2000], epochs=8, batch_size=20, verbose=2, validation_data=(x[2000:], labels[2000:])
)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"test accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
