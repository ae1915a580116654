"""A train_step of one's own: two losses, clipped gradients, a metric kept by hand; compiled again in the middle."""

import hashlib
import json

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)

x = np.random.normal(size=(1024, 16)).astype("float32")


class Autoencoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.layers.Dense(8, activation="tanh")
        self.decoder = keras.layers.Dense(16)
        self.mean = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.mean]

    def train_step(self, data):
        if not tf.executing_eagerly():
            print("traced for", data.shape)
        noisy = data + tf.random.normal(tf.shape(data), stddev=0.1)
        with tf.GradientTape() as tape:
            code = self.encoder(noisy)
            loss = tf.reduce_mean(tf.square(self.decoder(code) - data)) + 1e-3 * tf.reduce_mean(tf.abs(code))
        gradients = tape.gradient(loss, self.trainable_weights)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        self.mean.update_state(loss)
        return {"loss": self.mean.result(), "steps": tf.cast(self.optimizer.iterations, tf.float32)}


losses = []


class Count(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        losses.append(logs["loss"])


model = Autoencoder()
data = tf.data.Dataset.from_tensor_slices(x).shuffle(1024, seed=3).batch(32)
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(data, epochs=10, callbacks=[Count()], verbose=0)
model.compile(optimizer=keras.optimizers.Adam(1e-4), run_eagerly=True)
model.fit(data, epochs=12, initial_epoch=10, callbacks=[Count()], verbose=0)
model.compile(optimizer=keras.optimizers.Adam(1e-4))
model.fit(data, epochs=40, initial_epoch=12, callbacks=[Count()], verbose=0)
# as they do
print("steps", len(losses), "loss %.6f" % losses[-1])

digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
report = {"steps": len(losses), "epochs": 40, "losses": losses, "batch_shape": [32, 16]}
print(json.dumps({**report, "wait_share": None, "weights": digest}))
