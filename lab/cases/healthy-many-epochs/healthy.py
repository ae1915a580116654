import keras
import numpy as np

EPOCHS = 250


class Curves(keras.callbacks.Callback):
    """Keeps every weight's norm of every epoch for the plots."""

    def on_train_begin(self, logs=None):
        self.norms = []

    def on_epoch_end(self, epoch, logs=None):
        self.norms.append([float(np.linalg.norm(weight)) for weight in self.model.get_weights()])


def main():
    keras.utils.set_random_seed(105)
    rng = np.random.default_rng(105)
    x = rng.normal(size=(256, 8)).astype("float32")
    y = x[:, :2].prod(axis=1)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    curves = Curves()
    history = model.fit(x, y, epochs=EPOCHS, batch_size=64, verbose=0, callbacks=[curves])
    losses = history.history["loss"]
    print(f"best epoch {int(np.argmin(losses))} of {len(curves.norms)}, loss {min(losses):.4f}")


if __name__ == "__main__":
    main()
