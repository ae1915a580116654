import jax
import jax.numpy as jnp
import numpy as np

OLD_FORMAT = 17


def batches(count=30):
    rng = np.random.default_rng(65)
    for number in range(count):
        features = rng.normal(size=(32, 8)).astype("float32")
        key = "targets" if number == OLD_FORMAT else "target"
        yield {"features": features, key: features[:, 0]}


def loss_fn(params, x, y):
    hidden = jnp.tanh(x @ params["w1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


@jax.jit
def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return {name: value - 0.05 * grads[name] for name, value in params.items()}, loss


def main():
    key = jax.random.PRNGKey(65)
    params = {"w1": jax.random.normal(key, (8, 16)), "w2": jnp.ones(16) * 0.1}
    print("training on 30 batches")
    for number, batch in enumerate(batches()):
        params, loss = update(params, batch["features"], batch["target"])
        if number % 10 == 0:
            print(f"batch {number}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
