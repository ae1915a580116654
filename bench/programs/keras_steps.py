"""Trains a Keras model for some seconds: layers of WIDTH, batches of ROWS. Prints the median time of a step."""

import itertools
import json
import sys
import time
from statistics import median

import keras
import numpy as np

SECONDS = 1.5

width, rows = int(sys.argv[1]), int(sys.argv[2])
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(width, activation="relu") for _ in range(4)] + [keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.random.default_rng(0).normal(size=(rows * 50, 64)).astype("float32")
ends = []


class Clock(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        ends.append(time.perf_counter())
        if ends[-1] - ends[0] > 2 * SECONDS:
            self.model.stop_training = True


model.fit(x, x[:, :1], batch_size=rows, epochs=10**6, callbacks=[Clock()], verbose=0)
late = [end for end in ends if end > ends[-1] - SECONDS]  # the first half is compilation and warming up
step_s = median(after - before for before, after in itertools.pairwise(late))
print(json.dumps({"step_ms": 1e3 * step_s}), file=sys.stderr)
