import os
import time

import keras
import numpy as np

LEFT_BEHIND = "cache/tile-17.lock"


class Tiles(keras.utils.PyDataset):
    """Each tile is made once, by whoever takes its lock file first; the others wait for it."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        path = f"cache/tile-{index}"
        while os.path.exists(path + ".lock"):
            time.sleep(0.5)
        if not os.path.exists(path + ".npy"):
            np.save(path + ".npy", np.random.default_rng(index).random((16, 20)))
        tile = np.load(path + ".npy").astype("float32")
        return tile, tile.mean(1)


def main():
    os.makedirs("cache", exist_ok=True)
    with open(LEFT_BEHIND, "w") as lock:
        lock.write("job 4711 on node 12")
    model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(8, activation="elu"), keras.layers.Dense(1)])
    model.compile("adam", "huber")
    print("a cache from last week", flush=True)
    model.fit(Tiles(workers=2, use_multiprocessing=True, max_queue_size=4), epochs=3, verbose=2, shuffle=False)


if __name__ == "__main__":
    main()
