"""Trains a Keras model whose state is about MEGABYTES for SECONDS, saved by WAY: nothing, backup or orbax.

Prints what its own saving cost. `steps` gets one byte for each step, so that a parent counts them after a kill.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np

megabytes, seconds, way, every_s = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], float(sys.argv[4])
seconds = float(os.environ.get("SECONDS_TO_TRAIN", seconds))
steps_per_epoch = int(sys.argv[5]) if len(sys.argv) > 5 else 100
width = int((megabytes * 1e6 / 12) ** 0.5)  # weights and two slots of Adam, four bytes each
keras.utils.set_random_seed(0)
keras.config.disable_interactive_logging()
model = keras.Sequential(
    [keras.Input((32,)), keras.layers.Dense(width), keras.layers.Dense(width), keras.layers.Dense(1)]
)
model.compile("adam", "mse")
x = np.random.normal(size=(8 * steps_per_epoch, 32)).astype("float32")
log = os.open("steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
began, pauses = [], []


class Clock(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        os.write(log, b".")
        began.append(time.perf_counter())
        if began[-1] - began[0] > seconds:
            self.model.stop_training = True


class Timed:
    """A callback that saves, asked every so many seconds, and timed."""

    def save_if_due(self, save):
        if began and time.perf_counter() - (pauses[-1][0] if pauses else began[0]) >= every_s:
            at = time.perf_counter()
            save()
            pauses.append((at, time.perf_counter() - at))


class Backup(Timed, keras.callbacks.BackupAndRestore):
    def on_train_batch_end(self, batch, logs=None):
        if every_s:
            self.save_if_due(self._save_model)


callbacks = [Clock()]
if way == "backup":
    callbacks.append(
        Backup("backup", delete_checkpoint=False) if every_s else keras.callbacks.BackupAndRestore("backup")
    )
if way == "orbax":
    import orbax.checkpoint as ocp

    manager = ocp.CheckpointManager(Path.cwd() / "orbax", options=ocp.CheckpointManagerOptions(max_to_keep=2))

    class Orbax(Timed, keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.save_if_due(self.save)

        def save(self):
            state = {str(i): v.numpy() for i, v in enumerate(self.model.variables + self.model.optimizer.variables)}
            manager.save(len(began), args=ocp.args.StandardSave(state))

    callbacks.append(Orbax())
model.fit(x, x[:, :1], batch_size=8, epochs=10**6, callbacks=callbacks, verbose=0)
print(
    json.dumps(
        {
            "steps": len(began),
            "seconds": began[-1] - began[0],
            "pauses": [pause for _, pause in pauses],
            "iterations": int(model.optimizer.iterations.numpy()),
        }
    )
)
