from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(params, x):
    return jnp.mean((jnp.tanh(x @ params["encode"]) @ params["decode"] - x) ** 2)


@partial(jax.jit, donate_argnums=(0, 1))
def update(params, momentum, x):
    loss, grads = jax.value_and_grad(loss_fn)(params, x)
    momentum = {name: 0.9 * momentum[name] + grads[name] for name in params}
    return {name: params[name] - 0.05 * momentum[name] for name in params}, momentum, loss


def main():
    rng = np.random.default_rng(111)
    key = jax.random.PRNGKey(111)
    params = {"encode": jax.random.normal(key, (256, 64)) * 0.05, "decode": jax.random.normal(key, (64, 256)) * 0.05}
    momentum = {name: jnp.zeros_like(value) for name, value in params.items()}
    losses = []
    for step in range(600):
        x = rng.normal(size=(128, 256)).astype("float32")
        params, momentum, loss = update(params, momentum, x)
        losses.append(float(loss))
        if step % 100 == 0:
            print(f"step {step}: loss {losses[-1]:.4f}")
    print(f"last loss {losses[-1]:.4f}, best {min(losses):.4f}")


if __name__ == "__main__":
    main()
