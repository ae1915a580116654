import keras
import numpy as np

CLASSES = 9


def digits(count=1200):
    rng = np.random.default_rng(11)
    images = rng.random((count, 16, 16, 1), dtype="float32")
    labels = rng.integers(0, 10, size=count)
    for image, label in zip(images, labels):
        image[label : label + 3, :, 0] += 1.0
    return images, labels


def main():
    keras.utils.set_random_seed(11)
    images, labels = digits()
    print(f"training on {len(images)} digits")
    model = keras.Sequential(
        [
            keras.Input((16, 16, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", jit_compile=False)
    model.fit(images, labels, epochs=2, batch_size=64, verbose=2)


if __name__ == "__main__":
    main()
