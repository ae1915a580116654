import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(26)
rng = np.random.default_rng(26)
num_classes = 10
centers = rng.normal(size=(num_classes, 16))
labels = rng.integers(0, num_classes, 2500)
x = (centers[labels] + 0.3 * rng.normal(size=(2500, 16))).astype("float32")

print("classes:", np.unique(labels))
model = keras.Sequential()
model.add(keras.Input((16,)))
model.add(keras.layers.Dense(48, activation="relu"))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(loss="mse", optimizer="adam", metrics=["accuracy"])
history = model.fit(x, labels, epochs=10, batch_size=32, validation_split=0.2, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"val accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
