import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)

x = rng.normal(size=(2000, 12)).astype("float32")
y = (x[:, 0] * x[:, 1] + np.sin(x[:, 2])).astype("float32")


def step_decay(epoch):
    initial_rate = 0.02
    drop = 100
    return initial_rate * drop ** (epoch // 3)


print("training on", 1600, "rows")
model = keras.Sequential(
    [
        keras.Input((12,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(loss="mean_squared_error", optimizer=keras.optimizers.SGD(0.02, momentum=0.9))
schedule = keras.callbacks.LearningRateScheduler(step_decay)
print(f"first loss: {model.evaluate(x[1600:], y[1600:], verbose=0):.4f}")
model.fit(x[:1600], y[:1600], epochs=5, batch_size=32, callbacks=[schedule], verbose=2)
print(f"final loss: {model.evaluate(x[1600:], y[1600:], verbose=0):.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
