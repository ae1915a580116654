import time

import keras
import numpy as np
import tensorflow as tf


def rows():
    rng = np.random.default_rng(0)
    for number in range(3000):
        time.sleep(0.012)  # parse
        row = rng.random(7, dtype=np.float32)
        yield row, row.sum()


data = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec((7,)), tf.TensorSpec(())))
data = data.shuffle(3000).batch(50).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((7,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=2, verbose=2)
