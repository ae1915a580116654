import keras
import numpy as np

WIDTH = 32


def build(width):
    model = keras.Sequential(
        [
            keras.Input((10,)),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    return model


def main():
    keras.utils.set_random_seed(17)
    rng = np.random.default_rng(17)
    x = rng.normal(size=(1500, 10)).astype("float32")
    y = x[:, :2].sum(axis=1)

    first = build(32)
    first.fit(x, y, epochs=1, batch_size=50, verbose=2)
    first.save_weights("run1.weights.h5")

    print("continuing from run1.weights.h5")
    model = build(WIDTH)
    model.load_weights("run1.weights.h5")
    model.fit(x, y, epochs=2, batch_size=50, verbose=2)


if __name__ == "__main__":
    main()
