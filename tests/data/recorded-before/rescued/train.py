"""A batch that takes more memory than it may have."""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
from keras import layers

BATCH, STEPS = 240000, 4
keras.utils.set_random_seed(3)
keras.config.disable_interactive_logging()
x = np.random.default_rng(0).normal(size=(STEPS * BATCH, 16)).astype("f")
model = keras.Sequential(
    [layers.Input((16,)), *(layers.Dense(64, activation="relu") for _ in range(8)), layers.Dense(1)]
)
model.compile(keras.optimizers.SGD(1e-2), "mse")
model.fit(x, x[:, :1] * 2, batch_size=BATCH, epochs=1, verbose=0)
print(json.dumps({"iterations": int(model.optimizer.iterations)}))
