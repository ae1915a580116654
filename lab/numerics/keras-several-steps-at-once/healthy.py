import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(201)
rng = np.random.default_rng(201)
x = rng.normal(size=(1600, 6)).astype("float32")
y = (x @ rng.normal(size=6)).astype("float32")
x[1111, 4] = 0.0
print("rows:", len(x))

model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(24, activation="tanh"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.02), loss="mse", steps_per_execution=5)
print(f"first loss: {model.evaluate(x[:800], y[:800], verbose=0):.4f}")
model.fit(x, y, batch_size=32, epochs=8, verbose=2)
print(f"final loss: {model.evaluate(x[:800], y[:800], verbose=0):.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
