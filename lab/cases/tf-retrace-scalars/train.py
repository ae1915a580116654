import numpy as np
import tensorflow as tf


class Curriculum:
    """Longer sequences as training goes on; the position in it is a plain number."""

    def __init__(self, steps):
        self.steps = steps

    def difficulty(self, step):
        return step / self.steps


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        rng = tf.random.Generator.from_seed(77)
        self.weights = tf.Variable(rng.normal((32, 32), stddev=0.1))

    @tf.function
    def learn(self, x, difficulty):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ self.weights) - difficulty * x))
        gradient = tape.gradient(loss, self.weights)
        self.weights.assign_sub(0.1 * gradient)
        return loss


def main():
    rng = np.random.default_rng(77)
    model, curriculum = Model(), Curriculum(steps=150)
    print("training with a curriculum")
    for step in range(curriculum.steps):
        x = tf.constant(rng.normal(size=(64, 32)).astype("float32"))
        loss = model.learn(x, curriculum.difficulty(step))
        if step % 30 == 0:
            print(f"step {step}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
