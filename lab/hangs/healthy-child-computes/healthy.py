import subprocess
import sys

import keras
import numpy as np

SCORER = """
import sys, time
total, ends = 0, time.monotonic() + 30
while time.monotonic() < ends:
    total += sum(range(10_000))
print("metric", total % 97)
"""


class Score(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch % 2:
            print(
                subprocess.run([sys.executable, "-c", SCORER], capture_output=True, text=True).stdout.strip(),
                flush=True,
            )


model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2), keras.layers.Dense(1)])
model.compile("ftrl", "mse")
x = np.random.rand(300, 2)
model.fit(x, x.sum(1), epochs=4, batch_size=10, verbose=2, callbacks=[Score()])
