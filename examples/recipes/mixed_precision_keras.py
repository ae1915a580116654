"""Mixed precision in Keras: half the memory for activations, and faster on GPUs that have units for it.

Three things must be right: the last layer in float32 (`dtype="float32"`), or the softmax loses small numbers; a scaled loss with float16, which
`compile` adds by itself and a loop of your own does not; and the policy set before the layers are made. bfloat16 has float32's
range and needs no scaling, on hardware that has it (A100 and later, TPUs).

Holdfast without this recipe: half precision that overflows is told apart from a learning rate that is too high, with the loss scale
as evidence; checkpoints hold the loss scale, so a run goes on with it.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np


def model_in(policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        layers = [keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3, "softmax", dtype="float32")]
        return keras.Sequential(layers)
    finally:
        keras.config.set_dtype_policy(before)


def main():
    keras.utils.set_random_seed(1)
    x = np.random.default_rng(0).normal(size=(128, 8)).astype("float32")
    y = np.arange(128) % 3
    model = model_in("mixed_float16")
    model.compile("adam", "sparse_categorical_crossentropy")
    history = model.fit(x, y, epochs=1, batch_size=32, verbose=0)
    hidden, last = model.layers
    return {
        "weights": hidden.kernel.dtype,
        "computes_in": hidden.compute_dtype,
        "output": last.compute_dtype,
        "optimizer": type(model.optimizer).__name__,
        "loss_is_finite": bool(np.isfinite(history.history["loss"][0])),
    }


if __name__ == "__main__":
    print(main())
