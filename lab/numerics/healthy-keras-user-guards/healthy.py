import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(142)
rng = np.random.default_rng(142)

centers = rng.normal(size=(3, 8))
labels = rng.integers(0, 3, 2000)
x = (centers[labels] + rng.normal(size=(2000, 8))).astype("float32")
model = keras.Sequential(
    [keras.Input((8,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [
    keras.callbacks.TerminateOnNaN(),
    keras.callbacks.EarlyStopping(patience=4, restore_best_weights=True),
    keras.callbacks.ReduceLROnPlateau(patience=2, factor=0.3),
]
model.fit(x, labels, epochs=20, batch_size=40, validation_split=0.25, callbacks=callbacks, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
