import numpy as np
import tensorflow as tf


class Curriculum:
    """Harder targets as training goes on; the position in it is a plain number."""

    def __init__(self, steps):
        self.steps = steps

    def difficulty(self, step):
        return step / self.steps


class Learner:
    def __init__(self, width=192):
        layers = [tf.keras.layers.Dense(width, activation="swish") for _ in range(5)]
        self.network = tf.keras.Sequential([tf.keras.Input((width,)), *layers])
        self.optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
        self.optimizer.build(self.network.trainable_variables)

    @tf.function
    def learn(self, x, difficulty):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.network(x, training=True) - difficulty * x))
        gradients = tape.gradient(loss, self.network.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_variables))
        return loss


def main():
    rng = np.random.default_rng(77)
    learner, curriculum = Learner(), Curriculum(steps=60)
    print("training with a curriculum")
    for step in range(curriculum.steps):
        x = tf.constant(rng.normal(size=(64, 192)).astype("float32"))
        loss = learner.learn(x, curriculum.difficulty(step))
        if step % 20 == 0:
            print(f"step {step}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
