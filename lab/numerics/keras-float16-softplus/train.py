import hashlib

import keras
import numpy as np
from keras import layers, ops

keras.mixed_precision.set_global_policy("mixed_float16")
keras.utils.set_random_seed(10)
rng = np.random.default_rng(10)


class Positive(layers.Layer):
    def call(self, x):
        return ops.log(1 + ops.exp(x))


x = rng.normal(size=(2000, 8)).astype("float32")
waiting = (14 + 3 * x[:, 0] - 2 * x[:, 1]).clip(0.5).astype("float32").reshape(-1, 1)
print("mean waiting time:", waiting.mean())
model = keras.Sequential(
    [keras.Input((8,)), layers.Dense(32, activation="relu"), layers.Dense(1), Positive(name="positive")]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mae")
history = model.fit(x, waiting, batch_size=40, epochs=8, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
