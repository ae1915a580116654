"""A functional model on arrays, with validation and a last batch that is smaller."""

import hashlib
import json
import zipfile

import keras
import numpy as np

keras.utils.set_random_seed(7)
keras.config.disable_interactive_logging()

x = np.random.normal(size=(3190, 20)).astype("float32")
y = np.random.randint(0, 4, size=3190)
x_val, y_val = x[:256], y[:256]

inputs = keras.Input((20,))
hidden = keras.layers.Dense(64, activation="relu", name="first")(inputs)
hidden = keras.layers.Dropout(0.2)(hidden)
hidden = keras.layers.BatchNormalization()(hidden)
outputs = keras.layers.Dense(4, activation="softmax", name="last")(hidden)
model = keras.Model(inputs, outputs)
schedule = keras.optimizers.schedules.CosineDecay(1e-3, 500)
model.compile(keras.optimizers.Adam(schedule), "sparse_categorical_crossentropy", metrics=["accuracy"])

losses = []


class Count(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        losses.append(logs["loss"])


history = model.fit(x, y, batch_size=32, epochs=10, validation_data=(x_val, y_val), callbacks=[Count()], verbose=0)
print("epochs", len(history.history["loss"]), "val_loss %.6f" % history.history["val_loss"][-1])
model.save("model.keras")
print("saved", sorted(zipfile.ZipFile("model.keras").namelist()))

digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
print(
    json.dumps(
        {
            "steps": len(losses),
            "epochs": 10,
            "losses": losses,
            "batch_shape": [3190 % 32, 20],
            "wait_share": None,
            "weights": digest,
        }
    )
)
