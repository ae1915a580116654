import os
import threading
import time

import keras
import numpy as np

index, table = threading.Lock(), threading.Lock()


def compact():
    with table:
        time.sleep(0.5)
        with index:  # keys
            pass


class Register(keras.callbacks.Callback):
    """Adds the epoch to a registry; its first use on this machine compacts it on the side."""

    def on_epoch_end(self, epoch, logs=None):
        time.sleep(0.4)
        if epoch == 6 and not os.path.exists("compacted"):
            open("compacted", "w").close()
            threading.Thread(target=compact, daemon=True).start()
            time.sleep(1)


x = np.random.default_rng(0).normal(size=(1000, 7)).astype("float32")
model = keras.Sequential([keras.Input((7,)), keras.layers.Dense(14, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.sum(1), epochs=10, batch_size=20, verbose=2, callbacks=[Register()])
print("trained to the end")
