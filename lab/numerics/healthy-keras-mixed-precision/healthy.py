import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(140)
rng = np.random.default_rng(140)

keras.mixed_precision.set_global_policy("mixed_float16")
x = rng.normal(size=(2400, 12)).astype("float32")
y = (x[:, 0] + np.sin(x[:, 1])).astype("float32")
model = keras.Sequential([keras.Input((12,)), layers.Dense(32, activation="relu"), layers.Dense(1, dtype="float32")])
optimizer = keras.optimizers.LossScaleOptimizer(
    keras.optimizers.Adam(2e-3), initial_scale=2.0**26, dynamic_growth_steps=60
)
model.compile(optimizer=optimizer, loss="mse")
model.fit(x, y, epochs=6, batch_size=40, verbose=2)
print("scale:", float(optimizer.dynamic_scale))
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
