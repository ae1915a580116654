import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, WIDTH = 1600, 512, 512


def loss_fn(weights, x):
    restored = jnp.tanh(x @ weights["in"]) @ weights["out"]
    return jnp.mean((restored - x) ** 2), restored


@jax.jit
def update(weights, x):
    (loss, restored), grads = jax.value_and_grad(loss_fn, has_aux=True)(weights, x)
    return {name: value - 0.1 * grads[name] for name, value in weights.items()}, loss, restored


def main():
    rng = np.random.default_rng(67)
    key = jax.random.PRNGKey(67)
    weights = {
        "in": jax.random.normal(key, (WIDTH, 32)) * 0.05,
        "out": jax.random.normal(key, (32, WIDTH)) * 0.05,
    }
    data = rng.random((4, BATCH, WIDTH), dtype=np.float32)
    history = []
    print("training a denoiser")
    for step in range(STEPS):
        weights, loss, restored = update(weights, data[step % 4])
        history.append((float(loss), restored))
        if step % 50 == 0:
            print(f"step {step}: loss {float(loss):.4f}", flush=True)
    print(f"best loss {min(loss for loss, _ in history):.4f}")


if __name__ == "__main__":
    main()
