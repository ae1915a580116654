import jax
import jax.numpy as jnp
import numpy as np

SIDE = 32


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [
        (jax.random.normal(k, (rows, columns)) * 0.05, jnp.zeros(columns))
        for k, rows, columns in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(params, x):
    for weights, bias in params[:-1]:
        x = jax.nn.relu(jnp.dot(x, weights) + bias)
    weights, bias = params[-1]
    return jnp.dot(x, weights) + bias


def loss_fn(params, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(predict(params, x)), y[:, None], axis=1))


@jax.jit
def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), loss


def main():
    rng = np.random.default_rng(61)
    images = rng.random((1024, SIDE, SIDE), dtype=np.float32)
    labels = rng.integers(0, 10, size=1024)
    print(f"training on {len(images)} images")
    params = init(jax.random.PRNGKey(61), [28 * 28, 64, 10])
    for epoch in range(3):
        for start in range(0, 1024, 64):
            batch = images[start : start + 64].reshape(64, -1)
            params, loss = update(params, batch, labels[start : start + 64])
        print(f"epoch {epoch}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
