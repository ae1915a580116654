import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
centers = rng.normal(size=(5, 16))
labels = rng.integers(0, 5, 3000)
data = (centers[labels] + 0.5 * rng.normal(size=(3000, 16))).astype("float32")

print("data:", data.shape)
model = keras.Sequential(
    [
        keras.Input((16,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(5, activation="softmax"),
    ]
)
opt = keras.optimizers.Adam(learning_rate=1e-3)
model.compile(optimizer=opt, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(data, labels, epochs=10, batch_size=30, validation_split=0.2, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"final accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
