"""A TensorFlow script that keeps its own checkpoints and goes on from the latest. `resume_tensorflow_own.py own|own_weights`"""

import hashlib
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

EPOCHS = 8
keras.utils.set_random_seed(1)
PLACE = "own" if os.path.basename(os.getcwd()) == "undisturbed" else "../own"
x = np.random.normal(size=(160, 4)).astype("float32")
y = x[:, :1] * 2
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(1e-2)
done = tf.Variable(0)
os.makedirs(PLACE, exist_ok=True)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, done=done), PLACE, max_to_keep=2)
weights = os.path.join(PLACE, "model.weights.h5")
if sys.argv[1] == "own":
    manager.restore_or_initialize()
elif os.path.exists(weights):
    model.load_weights(weights)
    done.assign(int(open(weights + ".epoch").read()))
for epoch in range(int(done), EPOCHS):
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(160, seed=epoch).batch(8)
    for inputs, targets in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs) - targets))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        time.sleep(0.005)
    done.assign(epoch + 1)
    if sys.argv[1] == "own":
        manager.save()
    else:
        model.save_weights(weights)
        open(weights + ".epoch", "w").write(str(epoch + 1))
print(json.dumps({"weights": hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()}))
