import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(29)
rng = np.random.default_rng(29)
angle = rng.uniform(0, 2 * np.pi, 2400)
ring = rng.integers(0, 3, 2400)
radius = 1 + ring + 0.2 * rng.normal(size=2400)
points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype("float32")

kernel = "zeros"
print("points:", points.shape)
model = keras.Sequential(
    [
        keras.Input((2,)),
        keras.layers.Dense(32, activation="relu", kernel_initializer=kernel),
        keras.layers.Dense(32, activation="relu", kernel_initializer=kernel),
        keras.layers.Dense(3, activation="softmax", kernel_initializer=kernel),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.005), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(points, ring, epochs=10, batch_size=30, validation_split=0.2, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"val accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
