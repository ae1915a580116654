import itertools
import time

import keras
import numpy as np

rng = np.random.default_rng(6)
x = rng.normal(size=(256, 6)).astype("float32")
y = (x[:, 0] > x[:, 1]).astype("float32")
found = []
for width, rate in itertools.product((4, 8, 16, 32), (0.1, 0.01, 0.001)):
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(width, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile(keras.optimizers.Adam(rate), "binary_crossentropy")
    history = model.fit(x, y, epochs=3, batch_size=32, verbose=0)
    found.append((history.history["loss"][-1], width, rate))
    time.sleep(2)  # the next job of the queue
print(f"best of {len(found)}: {min(found)}")
