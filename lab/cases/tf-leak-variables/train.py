import tensorflow as tf

BATCH = 256


class Trainer:
    def __init__(self):
        self.model = tf.keras.Sequential(
            [tf.keras.Input((512,)), tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(512)]
        )
        self.optimizer = tf.keras.optimizers.SGD(1e-3)
        self.averages = []

    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.model(x, training=True) - x) ** 2)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        # A copy of the weights after each step, for an average at the end.
        self.averages.append([tf.Variable(weight) for weight in self.model.trainable_variables])
        return loss


def main():
    tf.random.set_seed(2)
    trainer = Trainer()
    print("training an autoencoder")
    for step in range(600):
        loss = trainer.step(tf.random.normal((BATCH, 512)))
        if step % 200 == 199:
            print(f"step {step + 1}: loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
