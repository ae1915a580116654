"""A layer of the user's own takes memory outside TensorFlow, by rows: nothing in the graph tells, and the kernel kills.

Small batches first, so that there is a checkpoint to go on from. `oom_unforeseen.py MIB_A_ROW`.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

MIB_A_ROW = int(sys.argv[1])
SMALL, LARGE = 8, 64


def hungry(x):
    space = np.ones(max(1, len(x) * MIB_A_ROW << 18), "float32")
    return x + np.float32(space[-1] - 1)


class Hungry(keras.layers.Layer):
    def call(self, x):
        def gradient(dy):
            return dy

        return tf.custom_gradient(
            lambda x: (tf.ensure_shape(tf.numpy_function(hungry, [x], tf.float32), x.shape), gradient)
        )(x)


def batches():
    random = np.random.default_rng(0)
    for number in range(30):
        x = random.normal(size=(SMALL if number < 20 else LARGE, 4)).astype("f")
        yield x, x[:, :1]


class Slowly(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        import time

        time.sleep(0.15)


keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((4,)), Hungry(), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01), "mse")
spec = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None, 1), tf.float32))
data = tf.data.Dataset.from_generator(batches, output_signature=spec).apply(tf.data.experimental.assert_cardinality(30))
model.fit(data, epochs=1, verbose=0, callbacks=[Slowly()])
weights = [float(np.abs(np.asarray(weight, "float64")).sum()) for weight in model.get_weights()]
print(json.dumps({"iterations": int(model.optimizer.iterations), "weights": weights}))
