import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(23)
rng = np.random.default_rng(23)

x = rng.normal(size=(2000, 9)).astype("float32")
diagnosis = np.where(x[:, 0] + x[:, 3] - x[:, 6] > 0, 2, 1)
y = diagnosis.astype("float32")
print("classes:", np.unique(diagnosis, return_counts=True))

model = keras.Sequential()
model.add(keras.Input((9,)))
model.add(keras.layers.Dense(32, activation="relu"))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, epochs=10, batch_size=32, validation_split=0.2, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"val accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
