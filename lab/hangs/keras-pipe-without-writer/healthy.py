import os
import threading

import keras
import numpy as np


class Monitor:
    """Says "go" over a pipe as long as there is disk left for the next epoch."""

    def __init__(self):
        self.inbox, self.outbox = os.pipe()
        self.asked = threading.Semaphore(0)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for turn in range(20):
            self.asked.acquire()
            os.write(self.outbox, b"go")

    def wait_for_go(self):
        self.asked.release()
        word = os.read(self.inbox, 16)
        return word == b"go"


class AskFirst(keras.callbacks.Callback):
    def __init__(self, monitor):
        super().__init__()
        self.monitor = monitor

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 2:
            print("asking the monitor", flush=True)
        self.model.stop_training = not self.monitor.wait_for_go()


x = np.linspace(0, 1, 2000, dtype="float32").reshape(-1, 1)
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
model.compile("rmsprop", "mae")
model.fit(x, np.sin(6 * x), epochs=4, batch_size=50, verbose=2, callbacks=[AskFirst(Monitor())])
