import hashlib

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(141)
rng = np.random.default_rng(141)

x = rng.normal(size=(3000, 10)).astype("float32")
y = np.sin(x[:, :1] * 2).astype("float32") + 0.1 * rng.normal(size=(3000, 1)).astype("float32")
model = keras.Sequential([keras.Input((10,)), layers.Dense(48, activation="tanh"), layers.Dense(1)])
schedule = keras.optimizers.schedules.CosineDecayRestarts(0.15, first_decay_steps=150, t_mul=1.5)
model.compile(optimizer=keras.optimizers.SGD(schedule, momentum=0.9), loss="mse")
model.fit(x, y, epochs=10, batch_size=40, verbose=2)
print("done")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
