import jax
import jax.numpy as jnp
import numpy as np

EMPTY_AT = 1300
FLOOR = 1e-6

jax.config.update("jax_debug_nans", True)


def entropy(shares):
    return -jnp.sum(shares * jnp.log(shares + FLOOR), axis=1)


def loss_fn(weights, counts):
    shares = counts / counts.sum(axis=1, keepdims=True)
    return jnp.mean((counts @ weights - entropy(shares)) ** 2)


@jax.jit
def step(weights, counts):
    loss, gradient = jax.value_and_grad(loss_fn)(weights, counts)
    return weights - 1e-3 * gradient, loss


def main():
    rng = np.random.default_rng(63)
    counts = rng.integers(1, 9, size=(2000, 6)).astype("float32")
    counts[EMPTY_AT, 2] = 0
    print("fitting a mixture of 6 components")
    weights = jnp.zeros(6)
    for start in range(0, 2000, 50):
        weights, loss = step(weights, counts[start : start + 50])
        if start % 500 == 0:
            print(f"row {start}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
