"""Trainings to be killed and resumed, one a kind of data. Nothing in it mentions Holdfast.

The model carries a record of its own data: a layer counts how often each sample was trained on, and chains the samples'
numbers in their order. Both are weights that are not trained, so they tell of the trajectory that led to the others.
Prints one JSON line: {"weights": hash of all weights, "record": hash of the chain, "uses": {times: samples}, …}.
"""

import hashlib
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

KIND = sys.argv[1]
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.004"))
SAMPLES, BATCH, EPOCHS = 800, 16, int(os.environ.get("EPOCHS", "8"))
WIDTH = int(os.environ.get("WIDTH", "32"))  # 1024 makes 12 MB of state
SEEDED = not KIND.startswith("unseeded")

if SEEDED:
    keras.utils.set_random_seed(11)
    tf.config.experimental.enable_op_determinism()
keras.config.disable_interactive_logging()
if KIND == "keras_mixed_precision":
    keras.mixed_precision.set_global_policy("mixed_float16")


@keras.saving.register_keras_serializable()
class Record(keras.layers.Layer):
    """Passes on everything but the first column, which is the sample's number."""

    def build(self, shape):
        make = dict(initializer="zeros", trainable=False, dtype="int64")
        self.uses = self.add_weight(shape=(SAMPLES,), name="uses", **make)
        self.chain = self.add_weight(shape=(), name="chain", **make)

    def call(self, x, training=False):
        if training:
            numbers = tf.cast(tf.round(tf.cast(x[:, 0], "float32")), "int64")
            self.uses.assign(self.uses + tf.math.bincount(tf.cast(numbers, "int32"), minlength=SAMPLES, dtype="int64"))
            place = tf.range(1, tf.shape(numbers, out_type="int64")[0] + 1, dtype="int64")
            self.chain.assign((self.chain * 1000003 + tf.reduce_sum(numbers * place) + 17) % (2**31 - 1))
        return x[:, 1:]


class Pace(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = 0

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if not os.path.exists("training"):
            open("training", "w").close()
        time.sleep(PAUSE_S)


def samples():
    chance = np.random if SEEDED else np.random.RandomState(3)
    x = chance.normal(size=(SAMPLES, 9)).astype("float32")
    y = (x[:, 1] + x[:, 2] * x[:, 3] > 0).astype("int64")
    x[:, 0] = np.arange(SAMPLES)
    return x, y


def model(rate=1e-3, **compiled):
    made = keras.Sequential(
        [
            keras.Input((9,)),
            Record(dtype="float32"),
            keras.layers.Dense(WIDTH, activation="relu"),
            *([keras.layers.Dense(WIDTH, activation="relu")] if WIDTH > 32 else []),
            keras.layers.Dropout(0.3),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(2, activation="softmax", dtype="float32"),
        ]
    )
    made.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"], **compiled)
    return made


class TwoOptimizers(keras.Model):
    """Its own step uses two optimizers, and not the one it is compiled with."""

    def __init__(self):
        super().__init__()
        self.record, self.body = Record(dtype="float32"), keras.layers.Dense(WIDTH, activation="relu")
        self.head, self.mean = keras.layers.Dense(2), keras.metrics.Mean(name="loss")
        self.of = {"body": keras.optimizers.Adam(1e-3), "head": keras.optimizers.SGD(1e-2, momentum=0.9)}

    @property
    def metrics(self):
        return [self.mean]

    def call(self, x, training=False):
        return self.head(self.body(self.record(x, training=training)))

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:
            found = self(data[0], training=True)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(data[1], found, from_logits=True))
        for name, layer in (("body", self.body), ("head", self.head)):
            self.of[name].apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        self.mean.update_state(loss)
        return {"loss": self.mean.result()}


class Shuffled(keras.utils.PyDataset):
    """Shuffles its order between epochs and adds noise to each batch, as augmenting data sets do."""

    def __init__(self, x, y, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y = x, y
        self.order = np.arange(len(x))
        self.chance = np.random.default_rng(5)

    def __len__(self):
        return len(self.x) // BATCH

    def __getitem__(self, i):
        rows = self.order[i * BATCH : (i + 1) * BATCH]
        x = self.x[rows].copy()
        x[:, 1:] += np.random.normal(scale=0.1, size=x[:, 1:].shape) + self.chance.normal(scale=0.1)
        return x, self.y[rows]

    def on_epoch_end(self):
        np.random.shuffle(self.order)


def endless(x, y):
    while True:
        order = np.random.permutation(len(x))
        for i in range(len(x) // BATCH):
            rows = order[i * BATCH : (i + 1) * BATCH]
            noise = np.random.normal(scale=0.1, size=(BATCH, 8))
            yield x[rows] + np.pad(noise, ((0, 0), (1, 0))).astype("float32"), y[rows]


def train():
    x, y = samples()
    pace, validation = Pace(), (x[:160], y[:160])
    if KIND in ("arrays", "unseeded_arrays", "keras_mixed_precision"):
        trained = model()
        history = trained.fit(x, y, batch_size=BATCH, epochs=EPOCHS, validation_data=validation, callbacks=[pace])
    elif KIND == "two_optimizers":
        trained = TwoOptimizers()
        trained.compile()
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(300).batch(BATCH)
        history = trained.fit(data, epochs=EPOCHS, callbacks=[pace])
    elif KIND in ("tf_data", "unseeded_tf_data"):
        trained = model()
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(300).batch(BATCH).prefetch(2)
        checked = tf.data.Dataset.from_tensor_slices(validation).shuffle(160).batch(40)
        history = trained.fit(data, epochs=EPOCHS, validation_data=checked, callbacks=[pace])
    elif KIND == "steps_per_execution":  # 50 batches an epoch: the last execution has two of them
        trained = model(steps_per_execution=4)
        history = trained.fit(x, y, batch_size=BATCH, epochs=3 * EPOCHS, validation_data=validation, callbacks=[pace])
    elif KIND == "steps_per_execution_repeat":
        trained = model(steps_per_execution=5)
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(SAMPLES).repeat().batch(BATCH)
        history = trained.fit(data, epochs=3 * EPOCHS, steps_per_epoch=SAMPLES // BATCH, callbacks=[pace])
    elif KIND == "tf_data_repeat":
        trained = model()
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(SAMPLES).repeat().batch(BATCH)
        history = trained.fit(data, epochs=EPOCHS, steps_per_epoch=SAMPLES // BATCH, callbacks=[pace])
    elif KIND in ("py_dataset", "py_dataset_workers"):
        trained = model()
        workers = 2 if KIND == "py_dataset_workers" else 1
        data = Shuffled(x, y, workers=workers)
        if workers > 1:
            data.__class__ = type("Plain", (Shuffled,), {"__getitem__": plain_item})
        history = trained.fit(data, epochs=EPOCHS, callbacks=[pace])
    elif KIND == "generator":
        trained = model()
        history = trained.fit(endless(x, y), epochs=EPOCHS, steps_per_epoch=SAMPLES // BATCH, callbacks=[pace])
    elif KIND == "streamed":
        import holdfast.data

        if not os.path.exists("x.npy"):
            np.save("y.npy", y)
            np.save("x.part.npy", x)
            os.replace("x.part.npy", "x.npy")
        trained = model()
        data = holdfast.data.open("x.npy", labels="y.npy", batch=BATCH, shuffle=True, seed=7, budget="8K").tensorflow()
        history = trained.fit(data, epochs=EPOCHS, callbacks=[pace])
    elif KIND == "two_fits":
        trained = model()
        first = trained.fit(x, y, batch_size=BATCH, epochs=EPOCHS // 2, callbacks=[pace])
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(300).batch(BATCH)
        print("between", first.history, trained.evaluate(x, y, verbose=0))
        trained.optimizer.learning_rate = 3e-4
        history = trained.fit(data, epochs=EPOCHS - EPOCHS // 2, callbacks=[pace])
    elif KIND == "two_models":
        # The first is not built before it is fitted; the second learns from what the first makes of the data.
        teacher = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
        teacher.compile("adam", "mse")
        teacher.fit(x[:, 1:], y.astype("float32"), batch_size=BATCH, epochs=EPOCHS // 2, callbacks=[Pace()])
        taught = (teacher.predict(x[:, 1:]).ravel() > 0.5).astype("int64")
        trained = model()
        history = trained.fit(x, taught, batch_size=BATCH, epochs=EPOCHS - EPOCHS // 2, callbacks=[pace])
    elif KIND == "schedule":
        trained = model(1e-2)
        callbacks = [
            pace,
            keras.callbacks.EarlyStopping("val_loss", patience=3, restore_best_weights=True),
            keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=0.05),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.97),
        ]
        history = trained.fit(x, y, batch_size=BATCH, epochs=4 * EPOCHS, validation_split=0.2, callbacks=callbacks)
    else:
        raise SystemExit(f"no kind {KIND}")
    return trained, history, pace


def plain_item(self, i):
    rows = self.order[i * BATCH : (i + 1) * BATCH]
    return self.x[rows], self.y[rows]


trained, history, pace = train()
uses, times = np.unique(trained.layers[0].uses.numpy(), return_counts=True)
print(
    json.dumps(
        {
            "weights": hashlib.sha256(b"".join(w.tobytes() for w in trained.get_weights())).hexdigest(),
            "record": int(trained.layers[0].chain.numpy()),
            "uses": {int(use): int(count) for use, count in zip(uses, times)},
            "history": history.history,
            "epochs": history.epoch,
            "batches": pace.batches,
            "iterations": int(trained.optimizer.iterations.numpy()),
        }
    )
)
