import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(139)
rng = np.random.default_rng(139)

from keras import ops


def recall_of_rare(y_true, y_pred):
    rare = ops.cast(ops.equal(ops.reshape(y_true, (-1,)), 5), "float32")
    hit = ops.cast(ops.equal(ops.argmax(y_pred, axis=1), 5), "float32")
    return ops.sum(rare * hit) / ops.sum(rare)


centers = rng.normal(size=(5, 10))
labels = rng.integers(0, 5, 2400)
x = (centers[labels] + 0.5 * rng.normal(size=(2400, 10))).astype("float32")
model = keras.Sequential(
    [keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(6, activation="softmax")]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy", recall_of_rare])
model.fit(x, labels, epochs=6, batch_size=40, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
