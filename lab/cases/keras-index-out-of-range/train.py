import keras
import numpy as np

ITEMS = 300


def clicks(count=4000):
    rng = np.random.default_rng(6)
    history = rng.integers(1, ITEMS + 1, size=(count, 8))
    bought = (history.max(axis=1) > 280).astype("float32")
    return history, bought


def main():
    keras.utils.set_random_seed(6)
    history, bought = clicks()
    print(f"training on {len(history)} clicks")
    inputs = keras.Input((8,), dtype="int32")
    x = keras.layers.Embedding(ITEMS, 16)(inputs)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dense(16, activation="relu")(x)
    outputs = keras.layers.Dense(1, activation="sigmoid")(x)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer="adam", loss="binary_crossentropy", jit_compile=False)
    model.fit(history, bought, epochs=2, batch_size=64, verbose=2)


if __name__ == "__main__":
    main()
