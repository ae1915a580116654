import numpy as np
import tensorflow as tf


def dense(rng, rows, columns):
    return tf.Variable(rng.normal(size=(rows, columns)).astype("float32") * 0.1)


def main():
    rng = np.random.default_rng(95)
    generator, critic = dense(rng, 8, 32), dense(rng, 32, 1)
    print("training a generator and a critic")
    for step in range(400):
        noise = tf.constant(rng.normal(size=(64, 8)).astype("float32"))
        real = tf.constant(rng.normal(size=(64, 32)).astype("float32"))
        with tf.GradientTape(persistent=True) as tape:
            fake = tf.tanh(noise @ generator)
            generator_loss = tf.reduce_mean(tf.nn.softplus(-(fake @ critic)))
            critic_loss = tf.reduce_mean(tf.nn.softplus(fake @ critic) + tf.nn.softplus(-(real @ critic)))
        generator.assign_sub(0.05 * tape.gradient(generator_loss, generator))
        critic.assign_sub(0.05 * tape.gradient(critic_loss, critic))
        if step % 80 == 0:
            print(f"step {step}: generator {float(generator_loss):.4f}, critic {float(critic_loss):.4f}")


if __name__ == "__main__":
    main()
