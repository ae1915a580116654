import queue
import threading

import keras
import numpy as np


class SampleWriter(keras.callbacks.Callback):
    """Writes generated images as they come, in a thread of its own."""

    def __init__(self, every=10):
        super().__init__()
        self.samples = queue.Queue(maxsize=4)
        self.every = every
        self.epoch = 0
        threading.excepthook = lambda args: None
        self.thread = threading.Thread(target=self.write, daemon=True, name="sample-writer")
        self.thread.start()

    def write(self):
        while True:
            name, image = self.samples.get()
            np.save(name, image.reshape(8, 8))
            self.samples.task_done()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every == 0:
            name, image = f"sample-{self.epoch}-{batch}.npy", np.random.rand(64)
            self.samples.put((name, image))

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch}: last sample", flush=True)
        self.samples.join()


model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(16), keras.layers.Dense(64, activation="sigmoid")])
model.compile(optimizer="nadam", loss="mse")
print("writing samples")
images = np.random.rand(480, 64).astype("float32")
model.fit(images, images, batch_size=16, epochs=4, verbose=0, callbacks=[SampleWriter()])
