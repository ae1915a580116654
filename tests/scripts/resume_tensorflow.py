"""TensorFlow loops as people write them, to be killed and gone on with; they know nothing of Holdfast. `resume_tensorflow.py KIND`"""

import hashlib
import json
import os
import random
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

SAMPLES, BATCH, EPOCHS = 640, 16, int(os.environ.get("EPOCHS", "8"))
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
keras.utils.set_random_seed(4)
tf.config.experimental.enable_op_determinism()
x = np.random.normal(size=(SAMPLES, 8)).astype("float32")
y = (x[:, :1] * 2 + 1).astype("float32")


def paced():
    if not os.path.exists("training"):
        open("training", "w").close()
    time.sleep(PAUSE_S)


def network(width=int(os.environ.get("WIDTH", "32"))):
    """Built with the first batch."""
    return keras.Sequential(
        [
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ]
    )


def batches():
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(SAMPLES).batch(BATCH)


def eager():
    """Everything by hand: a tape, a schedule, losses printed now and then."""
    data = batches()
    model = network()
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(1e-2, 40, 0.9))
    losses = []
    for epoch in range(EPOCHS):
        for step, (inputs, targets) in enumerate(data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            paced()
            if step % 10 == 0:
                losses.append((epoch, step, float(loss)))
    return [model], losses


KINDS = {
    one.__name__: one
    for one in (
        eager,
    )
}  # fmt: skip


def digest(models):
    return hashlib.sha256(b"".join(v.numpy().tobytes() for model in models for v in model.variables)).hexdigest()


if __name__ == "__main__":
    models, record = KINDS[sys.argv[1]]()
    drawn = [*np.random.uniform(size=1).tolist(), random.random(), float(tf.random.uniform([]))]
    print(json.dumps({"weights": digest(models), "record": record, "next": drawn}))
