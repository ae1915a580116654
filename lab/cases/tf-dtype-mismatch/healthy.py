import numpy as np
import tensorflow as tf

POINTS = 40


def curves(count=800):
    rng = np.random.default_rng(3)
    phase = rng.uniform(0, np.pi, size=(count, 1))
    x = np.sin(np.linspace(0, 6, POINTS)[None, :] + phase)
    return x.astype("float32"), np.cos(phase).astype("float32")


class Regressor(tf.Module):
    def __init__(self, width=16):
        super().__init__()
        rng = tf.random.Generator.from_seed(3)
        self.w1 = tf.Variable(rng.normal((POINTS, width), stddev=0.2), name="w1")
        self.b1 = tf.Variable(tf.zeros(width), name="b1")
        self.w2 = tf.Variable(rng.normal((width, 1), stddev=0.2), name="w2")

    def __call__(self, x):
        return tf.matmul(tf.nn.tanh(tf.matmul(x, self.w1) + self.b1), self.w2)


def main():
    x, y = curves()
    print(f"fitting {len(x)} curves")
    batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(800, seed=3).batch(32)
    model = Regressor()
    for epoch in range(3):
        for rows, targets in batches:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(rows) - targets))
            gradients = tape.gradient(loss, model.trainable_variables)
            for variable, gradient in zip(model.trainable_variables, gradients):
                variable.assign_sub(0.05 * gradient)
        print(f"epoch {epoch}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
