"""A JAX loop: compiled steps cannot be seen from outside, so one call says when a step is over."""

import time

import jax
import jax.numpy as jnp

import holdfast

holdfast.attach(name="loop-jax")

key = jax.random.PRNGKey(0)
x = jax.random.normal(key, (2048, 20))
y = (x.sum(axis=1) > 0).astype(jnp.float32)
weights = jnp.zeros(20)


def loss_of(weights, inputs, labels):
    return jnp.mean(jnp.logaddexp(0.0, inputs @ weights) - labels * (inputs @ weights))


@jax.jit
def train_step(weights, inputs, labels):
    loss, gradient = jax.value_and_grad(loss_of)(weights, inputs, labels)
    return weights - 0.5 * gradient, loss


for epoch in range(3):
    for start in range(0, len(x), 64):
        asked = time.perf_counter()
        inputs, labels = x[start : start + 64], y[start : start + 64]
        waited = time.perf_counter() - asked
        weights, loss = train_step(weights, inputs, labels)
        holdfast.step(loss=loss, epoch=epoch, batch_shape=inputs.shape, wait_s=waited, learning_rate=0.5)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
