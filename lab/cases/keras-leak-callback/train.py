import keras
import numpy as np

ROWS, FEATURES, BATCH = 6400, 512, 64


class ActivationKeeper(keras.callbacks.Callback):
    """Keeps what the hidden layer says to every batch, to be plotted later."""

    def __init__(self, probe):
        super().__init__()
        self.probe = probe
        self.activations = []

    def on_train_begin(self, logs=None):
        self.hidden = keras.Model(self.model.inputs, self.model.layers[0].output)

    def on_train_batch_end(self, batch, logs=None):
        self.activations.append(np.array(self.hidden(self.probe)))


def main():
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    x = rng.random((ROWS, FEATURES), dtype=np.float32)
    y = (x.sum(1) > FEATURES / 2).astype("float32")
    model = keras.Sequential(
        [keras.Input((FEATURES,)), keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1)]
    )
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
    print(f"training on {ROWS} rows")
    model.fit(x, y, batch_size=BATCH, epochs=12, verbose=2, callbacks=[ActivationKeeper(x[:512])])


if __name__ == "__main__":
    main()
