import time

import keras
import numpy as np


class Spectra(keras.utils.PyDataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        time.sleep(0.3)  # from the archive
        return rng.random((8, 40)), rng.random((8, 1))


class Progress(keras.callbacks.Callback):
    epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if batch % 10 == 0:
            print(f"epoch {self.epoch} batch {batch}", flush=True)


if __name__ == "__main__":
    model = keras.Sequential([keras.Input((40,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = Spectra(workers=2, use_multiprocessing=True, max_queue_size=3)
    model.fit(data, epochs=2, verbose=2, callbacks=[Progress()])
