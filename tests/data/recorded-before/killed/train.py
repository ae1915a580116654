"""A Keras fit that is killed once, at batch 130 of 200: a file beside it says that it may be.

A weight that is not trained counts how often each sample was trained on, so a batch left out or repeated shows.
"""

import json
import os
import signal
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

SAMPLES, BATCH, EPOCHS, KILLED_AT = 400, 8, 4, 130
keras.utils.set_random_seed(11)
keras.config.disable_interactive_logging()


@keras.saving.register_keras_serializable()
class Uses(keras.layers.Layer):
    """Passes on everything but the first column, which is the sample's number."""

    def build(self, shape):
        self.uses = self.add_weight(shape=(SAMPLES,), initializer="zeros", trainable=False, dtype="int32", name="uses")

    def call(self, x, training=False):
        if training:
            numbers = tf.cast(tf.round(x[:, 0]), "int32")
            self.uses.assign(self.uses + tf.math.bincount(numbers, minlength=SAMPLES))
        return x[:, 1:]


class Pace(keras.callbacks.Callback):
    """Slow enough for a checkpoint a second, and killed once."""

    seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        time.sleep(float(os.environ.get("STEP_PAUSE_S", "0")))
        if os.path.exists("may_be_killed") and self.seen == KILLED_AT:
            os.unlink("may_be_killed")
            os.kill(os.getpid(), signal.SIGKILL)


x = np.random.normal(size=(SAMPLES, 5)).astype("float32")
y = (x[:, 1] + x[:, 2] * x[:, 3] > 0).astype("int64")
x[:, 0] = np.arange(SAMPLES)
layers = [Uses(), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.2), keras.layers.Dense(2)]
model = keras.Sequential([keras.Input((5,)), *layers])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
pace = Pace()
model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[pace])
weights = [weight.astype("float64").ravel().tolist() for weight in model.get_weights()]
print(json.dumps({"batches": pace.seen, "iterations": int(model.optimizer.iterations), "weights": weights}))
