import keras
import numpy as np

IMAGE = (64, 64, 3)
BATCH = 8


def images(count=256, classes=4):
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, count)
    x = rng.integers(0, 256, (count, *IMAGE), dtype=np.uint8)
    x[..., 0] = x[..., 0] // 2 + (y * 30)[:, None, None].astype(np.uint8)
    return x, y


def build():
    return keras.Sequential(
        [
            keras.Input(IMAGE),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(4, activation="softmax"),
        ]
    )


def main():
    keras.utils.set_random_seed(0)
    x, y = images()
    print(f"training on {len(x)} images, {BATCH} at a time")
    model = build()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=BATCH, epochs=1, verbose=2)
    model.save("classifier.keras")


if __name__ == "__main__":
    main()
