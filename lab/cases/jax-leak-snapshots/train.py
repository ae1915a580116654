import collections

import jax
import jax.numpy as jnp


def start(key):
    first, second = jax.random.split(key)
    return {"in": jax.random.normal(first, (512, 1024)) * 0.02, "out": jax.random.normal(second, (1024, 64)) * 0.02}


def cost(params, x):
    return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"]) ** 2)


@jax.jit
def update(params, x):
    value, slope = jax.value_and_grad(cost)(params, x)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, slope), value


def main():
    key = jax.random.PRNGKey(0)
    params = start(key)
    snapshots = []
    for step in range(700):
        key, drawn = jax.random.split(key)
        params, value = update(params, jax.random.normal(drawn, (512, 512)))
        snapshots.append(params)
        if step % 50 == 0:
            print(f"step {step}: cost {float(value):.5f}", flush=True)


if __name__ == "__main__":
    main()
