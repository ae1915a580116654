import keras
import numpy as np


class BestAccuracy(keras.callbacks.Callback):
    """Remembers the best validation accuracy and the epoch it came from."""

    def __init__(self):
        super().__init__()
        self.best = 0.0
        self.best_epoch = None

    def on_epoch_end(self, epoch, logs=None):
        accuracy = logs["val_accuracy"]
        if accuracy > self.best:
            self.best, self.best_epoch = accuracy, epoch


def make_data(samples=2000, features=32, classes=5):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(samples, features)).astype("float32")
    y = (x @ rng.normal(size=(features, classes))).argmax(axis=1)
    return x, y


def main():
    keras.utils.set_random_seed(7)
    x, y = make_data()
    print(f"training on {len(x)} samples")
    model = keras.Sequential(
        [
            keras.Input((x.shape[1],)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(5, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    best = BestAccuracy()
    model.fit(x, y, validation_split=0.2, epochs=5, batch_size=64, callbacks=[best], verbose=2)
    print(f"best accuracy {best.best:.3f} in epoch {best.best_epoch}")


if __name__ == "__main__":
    main()
