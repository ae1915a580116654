import time
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

READERS = 4


def read_shard(number):
    """Reading is slow, so many readers run at once."""
    time.sleep(0.05)
    rng = np.random.default_rng(number)
    x = np.concatenate([rng.normal(size=(1, 64)) for _ in range(400)]).astype("float32")
    return x, (x[:, 0] * x[:, 1] > 0).astype("float32")


class ReadEveryEpoch(keras.utils.PyDataset):
    """Fresh shards for every epoch, read by a pool of threads."""

    def __init__(self, shards=200, **options):
        super().__init__(**options)
        self.shards, self.epoch = shards, 0
        self.load()

    def load(self):
        numbers = range(self.epoch * self.shards, (self.epoch + 1) * self.shards)
        with ThreadPoolExecutor(READERS) as readers:
            self.data = list(readers.map(read_shard, numbers))

    def __len__(self):
        return self.shards

    def __getitem__(self, index):
        return self.data[index]

    def on_epoch_end(self):
        self.epoch += 1
        self.load()


def main():
    keras.utils.set_random_seed(16)
    print(f"training on shards, {READERS} readers")
    data = ReadEveryEpoch()
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(data, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
