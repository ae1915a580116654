"""A large effective batch in small ones, and gradients that are clipped, in Keras.

Both are arguments of the optimizer: `gradient_accumulation_steps=4` with a quarter of the batch, and `global_clipnorm=1.0`. Two traps: with
`clipnorm` each weight is clipped by itself, which changes the direction of the update; and a loop that calls `apply_gradients` for each part with
a quarter of the rate is not the same for Adam. Keras counts iterations by parts: a schedule of the learning rate must be that many times as long.

Holdfast without this recipe: a batch that does not fit is done in parts by itself, with the update, the step count and the schedule of the
whole batch; gradients that explode are noticed, traced, and clipped where the policy allows.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np

BATCH, PARTS = 64, 4


def trained(batch, **options):
    keras.utils.set_random_seed(1)
    x = np.random.default_rng(1).normal(size=(256, 8)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05, **options), "mse")
    model.fit(x, y, batch_size=batch, epochs=2, shuffle=False, verbose=0)
    return model.get_weights()


def main():
    whole = trained(BATCH, global_clipnorm=1.0)
    parts = trained(BATCH // PARTS, global_clipnorm=1.0, gradient_accumulation_steps=PARTS)
    each = trained(BATCH, clipnorm=1.0)
    apart = max(float(np.abs(a - b).max()) for a, b in zip(whole, parts, strict=True))
    turned = max(float(np.abs(a - b).max()) for a, b in zip(whole, each, strict=True))
    return {"parts_differ_by": apart, "clipnorm_differs_by": turned}


if __name__ == "__main__":
    print(main())
