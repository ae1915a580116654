import keras
import numpy as np
import tensorflow as tf


class Unrolled(keras.layers.Layer):
    """A recurrence written out by hand."""

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], shape[-1]))

    def call(self, x):
        for turn in range(2500):
            x = tf.tanh(tf.matmul(x, self.kernel) + 0.001 * turn)
        return x


x = np.random.default_rng(7).normal(size=(24, 4)).astype("float32")
inputs = keras.Input((4,))
model = keras.Model(inputs, keras.layers.Dense(1)(Unrolled()(inputs)))
model.compile("sgd", "mse")
model.fit(x, x.mean(1), batch_size=8, epochs=2, verbose=2)
