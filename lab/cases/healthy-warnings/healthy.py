import sys
import warnings

import keras
import numpy as np


class Chatty(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        warnings.warn("learning rate schedule is deprecated and will raise an error in a future release", FutureWarning)
        print(f"WARNING: memory usage is high ({60 + epoch} %), consider a smaller batch", file=sys.stderr)
        print(
            "W external/local_tsl/tsl/framework/cpu_allocator_impl.cc:83] Allocation of 411041792 exceeds 10% of free system memory.",
            file=sys.stderr,
        )


def main():
    keras.utils.set_random_seed(103)
    rng = np.random.default_rng(103)
    x = rng.normal(size=(1600, 10)).astype("float32")
    with np.errstate(all="warn"):
        ratio = x[:, 0] / np.where(np.arange(1600) == 7, 0.0, 1.0)
    y = np.nan_to_num(ratio, posinf=0.0, neginf=0.0)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu", input_shape=(10,)), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    history = model.fit(x, y, epochs=4, batch_size=32, verbose=2, callbacks=[Chatty()])
    print(f"finished with loss {history.history['loss'][-1]:.4f}")


if __name__ == "__main__":
    main()
