import keras
import numpy as np

ROWS, CLASSES = 60000, 1000


def main():
    keras.utils.set_random_seed(93)
    rng = np.random.default_rng(93)
    x = rng.normal(size=(ROWS, 16)).astype("float32")
    y = rng.integers(0, CLASSES, size=ROWS)
    model = keras.Sequential(
        [keras.Input((16,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(CLASSES, "softmax")]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    model.fit(x[:12000], y[:12000], epochs=2, batch_size=128, verbose=2)
    parts = []
    for start in range(0, ROWS, 2000):
        parts.append(model.predict_on_batch(x[start : start + 2000]))
    scores = np.concatenate(parts)
    print(f"predicted {scores.shape}, {scores.nbytes >> 20} MB")
    model.fit(x[:12000], y[:12000], epochs=1, batch_size=128, verbose=2)
    print(f"best class {scores.mean(axis=0).argmax()}")


if __name__ == "__main__":
    main()
