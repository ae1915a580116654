import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(22)
rng = np.random.default_rng(22)

n = 1500
x = rng.normal(size=(n, 8)).astype("float32")
salary = (52000 + 9000 * x[:, 1] + 4000 * x[:, 2]).astype("float32")

salary = (salary - 52000) / 9000
print("salaries:", salary[:3])
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(16, activation="sigmoid"),
        keras.layers.Dense(1),
    ]
)
model.compile(loss="mean_absolute_error", optimizer="adam")
history = model.fit(x, salary, epochs=12, batch_size=30, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"of the first loss: {history.history['loss'][-1] / history.history['loss'][0]:.2f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
