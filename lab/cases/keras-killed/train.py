import keras
import numpy as np

keras.utils.set_random_seed(11)

rng = np.random.default_rng(11)
x = rng.normal(size=(20000, 64)).astype("float32")
y = (x[:, :8].sum(axis=1) > 0).astype("float32")
print(f"training on {len(x)} rows")

inputs = keras.Input((64,))
hidden = keras.layers.Dense(256, activation="relu")(inputs)
hidden = keras.layers.Dropout(0.2)(hidden)
hidden = keras.layers.Dense(256, activation="relu")(hidden)
outputs = keras.layers.Dense(1, activation="sigmoid")(hidden)
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=64, epochs=6, validation_split=0.1, verbose=2)
model.save("churn.keras")
