import hashlib

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(152)
rng = np.random.default_rng(152)

generator = tf.keras.Sequential(
    [tf.keras.layers.Input((4,)), tf.keras.layers.Dense(24, activation="relu"), tf.keras.layers.Dense(2)]
)
critic = tf.keras.Sequential(
    [tf.keras.layers.Input((2,)), tf.keras.layers.Dense(24, activation="relu"), tf.keras.layers.Dense(1)]
)
g_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.9)
c_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.9)


@tf.function
def critic_step(real, noise, mix):
    with tf.GradientTape() as tape:
        fake = generator(noise)
        between = mix * real + (1 - mix) * fake
        with tf.GradientTape() as inner:
            inner.watch(between)
            value = critic(between)
        slope = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(value, between)), axis=1) + 1e-12)
        penalty = tf.reduce_mean(tf.square(slope - 1))
        loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10 * penalty
    gradients = tape.gradient(loss, critic.trainable_variables)
    c_opt.apply_gradients(zip(gradients, critic.trainable_variables))
    return loss


@tf.function
def generator_step(noise):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(critic(generator(noise)))
    gradients = tape.gradient(loss, generator.trainable_variables)
    g_opt.apply_gradients(zip(gradients, generator.trainable_variables))
    return loss


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


for step in range(250):
    for _ in range(3):
        real = normal(64, 2) * 0.3 + np.array([1.5, -1.0], "float32")
        c_loss = critic_step(real, normal(64, 4), rng.random((64, 1)).astype("float32"))
    g_loss = generator_step(normal(64, 4))
    if step % 50 == 0:
        print(f"step {step}: critic {float(c_loss):.3f}, generator {float(g_loss):.3f}")
print("done")
weights = generator.get_weights() + critic.get_weights()
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in weights)).hexdigest())
