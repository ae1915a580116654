import keras
import numpy as np


class SettleRate(keras.callbacks.Callback):
    """Brings the learning rate near a target once the loss is flat."""

    def __init__(self, target, floor, tolerance=1e-4):
        super().__init__()
        self.target, self.floor, self.tolerance = target, floor, tolerance

    def settled(self, rate):
        while abs(rate - self.target) > self.tolerance:
            rate = max(rate * 0.5, self.floor)
        return rate

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            print("rate is lowered", flush=True)
            rate = float(self.model.optimizer.learning_rate.numpy())
            self.model.optimizer.learning_rate.assign(self.settled(rate))


rng = np.random.default_rng(8)
x = rng.random((1000, 30), dtype=np.float32)
y = x @ rng.random((30, 1), dtype=np.float32)

inputs = keras.Input((30,))
outputs = keras.layers.Dense(1)(keras.layers.Dense(24, activation="gelu")(inputs))
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.SGD(0.01), "mse")
model.fit(x, y, epochs=5, batch_size=25, verbose=2, callbacks=[SettleRate(target=1e-3, floor=1e-3)])
