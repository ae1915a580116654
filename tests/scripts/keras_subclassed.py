"""A subclassed model that builds itself on the first batch, SGD with momentum, stopped early by a callback."""

import hashlib
import json

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)

x = np.random.normal(size=(2000, 12)).astype("float32")
y = (x.sum(axis=1, keepdims=True) > 0).astype("float32")


class Block(keras.layers.Layer):
    def build(self, input_shape):
        print("built for", input_shape)
        self.dense = keras.layers.Dense(48)

    def call(self, x):
        hidden = tf.nn.relu(self.dense(x))
        return hidden + tf.random.normal(tf.shape(hidden), stddev=0.01)


class Tiny(keras.Model):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = keras.layers.Dense(1)

    def call(self, x, training=False):
        return self.head(self.block(x))


class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        losses.append(logs["loss"])
        if len(losses) == 1050:
            self.model.stop_training = True


losses = []
model = Tiny()
model.compile(
    optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
)
model.fit(x, y, batch_size=16, epochs=50, callbacks=[Stop()], verbose=0)
print("stopped after", len(losses))

digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
report = {"steps": len(losses), "epochs": -(-len(losses) // 125), "losses": losses, "batch_shape": [16, 12]}
print(json.dumps({**report, "wait_share": None, "weights": digest}))
