import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)

n = 2000
readings = rng.normal(size=(n, 8)).astype("float32")
target = (readings[:, 0] * 1.5 - readings[:, 3] + 0.2 * rng.normal(size=n)).astype("float32")
fault_code = 1e30
readings[1000:1003, 5] = fault_code

split = 1600
print("training on", split, "readings of 8 sensors")
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
first = model.evaluate(readings[split:], target[split:], verbose=0)[0]
model.fit(readings[:split], target[:split], epochs=6, batch_size=32, shuffle=False, verbose=2)
last = model.evaluate(readings[split:], target[split:], verbose=0)[0]
print(f"first loss: {first:.4f}")
print(f"final loss: {last:.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
