import glob

import keras
import numpy as np
import tensorflow as tf


def read(name):
    return np.load(name.numpy().decode())


def shard(name):
    rows = tf.py_function(read, [name], tf.float32)
    rows.set_shape((256, 16))
    return rows, tf.reduce_sum(rows, axis=1)


names = sorted(glob.glob("shards/*.npy"))
print(f"reading {len(names)} shards")
data = tf.data.Dataset.from_tensor_slices(names).map(shard, num_parallel_calls=2).prefetch(4)
model = keras.Sequential(
    [
        keras.Input((16,)),
        keras.layers.Dense(2048, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
model.fit(data, epochs=6, verbose=2)
