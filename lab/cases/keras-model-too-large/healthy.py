import keras
import numpy as np

SIDE = 224
UNITS = 16


def build():
    return keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 3)),
            keras.layers.Flatten(),
            keras.layers.Dense(UNITS, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )


def main():
    keras.utils.set_random_seed(43)
    rng = np.random.default_rng(43)
    images = rng.integers(0, 255, (64, SIDE, SIDE, 3), dtype="uint8")
    labels = (images[:, 0, 0, 0] > 127).astype("float32")
    print(f"building a model for {len(images)} images")
    model = build()
    model.compile(optimizer="sgd", loss="binary_crossentropy")
    model.fit(images, labels, batch_size=8, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
