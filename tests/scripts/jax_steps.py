"""A loop on JAX, with its steps told by `holdfast.step`: nobody else can see a compiled step."""

import hashlib
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

import holdfast

random = np.random.default_rng(0)
x, y = random.normal(size=(640, 20)).astype("float32"), random.normal(size=(640,)).astype("float32")
weights, losses, epochs = jnp.zeros(20), [], 3


@jax.jit
def train_step(weights, inputs, targets):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((inputs @ w - targets) ** 2))(weights)
    return weights - 0.05 * gradient, loss


for epoch in range(epochs):
    order = random.permutation(len(x))
    for start in range(0, len(x), 32):
        rows = order[start : start + 32]
        weights, loss = train_step(weights, x[rows], y[rows])
        holdfast.step(loss=loss, epoch=epoch, batch_shape=x[rows].shape)
        losses.append(float(loss))
        time.sleep(0.01)
report = {"steps": len(losses), "epochs": epochs, "losses": losses, "batch_shape": [32, 20], "wait_share": None}
print(json.dumps({**report, "weights": hashlib.sha256(np.asarray(weights).tobytes()).hexdigest()}))
