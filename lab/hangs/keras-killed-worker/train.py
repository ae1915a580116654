import time

import keras
import numpy as np


class Spectra(keras.utils.PyDataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        time.sleep(0.15)  # from the archive
        return rng.random((8, 40)), rng.random((8, 1))


if __name__ == "__main__":
    model = keras.Sequential([keras.Input((40,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Spectra(workers=2, use_multiprocessing=True, max_queue_size=3), epochs=40, verbose=2)
