import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(202)
rng = np.random.default_rng(202)
x = rng.normal(size=(1600, 8)).astype("float32")
y = (x @ rng.normal(size=8)).astype("float32")
print("samples:", len(x))
schedule = keras.optimizers.schedules.ExponentialDecay(0.02, decay_steps=200, decay_rate=0.9)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(schedule), loss="mse")
print(f"first loss: {model.evaluate(x, y, verbose=0):.4f}")
model.fit(x, y, batch_size=32, epochs=6, verbose=2)
print(f"final loss: {model.evaluate(x, y, verbose=0):.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
