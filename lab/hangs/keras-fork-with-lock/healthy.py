import multiprocessing
import threading
import time

import keras
import numpy as np

CACHE_LOCK = threading.Lock()
CACHE = {}


def warm_up(count):
    """Reads ahead, in the background."""
    rng = np.random.default_rng(3)
    for index in range(count):
        with CACHE_LOCK:
            CACHE[index] = rng.random((16, 16, 1), dtype=np.float32)
            time.sleep(0.02)  # decode


class Images(keras.utils.PyDataset):
    def __init__(self, count, **options):
        super().__init__(**options)
        self.count = count

    def __len__(self):
        return self.count // 10

    def __getitem__(self, index):
        with CACHE_LOCK:  # one reader at a time
            batch = [CACHE.get(i % 50, np.zeros((16, 16, 1), "float32")) for i in range(index * 10, index * 10 + 10)]
        return np.stack(batch), np.arange(10) % 2


def main():
    multiprocessing.set_start_method("fork")
    reader = threading.Thread(target=warm_up, args=(400,), daemon=True)
    reader.start()
    reader.join()
    print(f"{len(CACHE)} images in the cache")
    model = keras.Sequential(
        [keras.Input((16, 16, 1)), keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    print("fitting", flush=True)
    model.fit(Images(300, workers=2, use_multiprocessing=True), epochs=3, verbose=2)


if __name__ == "__main__":
    main()
