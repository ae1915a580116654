import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(133)
rng = np.random.default_rng(133)

x = rng.normal(size=(3000, 5)).astype("float32")
y = (1500 * x[:, 0] - 700 * x[:, 3] + 50 * rng.normal(size=3000)).astype("float32")
model = keras.Sequential([keras.Input((5,)), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(10.0), loss="mse")
history = model.fit(x, y, epochs=8, batch_size=30, verbose=2)
print(f"from {history.history['loss'][0]:.0f} to {history.history['loss'][-1]:.0f}")
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
