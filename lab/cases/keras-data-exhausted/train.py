import keras
import numpy as np
import tensorflow as tf


def main():
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x = rng.random((400, 16), dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).batch(32)
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    print("training for 3 epochs of 20 steps")
    model.fit(dataset, steps_per_epoch=20, epochs=3, verbose=2)


if __name__ == "__main__":
    main()
