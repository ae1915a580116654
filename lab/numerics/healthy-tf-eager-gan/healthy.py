import hashlib

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(77)
generator = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(24, "relu"), tf.keras.layers.Dense(1)])
critic = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(24, "relu"), tf.keras.layers.Dense(1)])
of_generator, of_critic = tf.keras.optimizers.Adam(2e-3), tf.keras.optimizers.Adam(2e-3)
loss_of = tf.keras.losses.BinaryCrossentropy(from_logits=True)
for step in range(500):
    real = tf.random.normal((32, 1), mean=2.0, stddev=0.5)
    noise = tf.random.normal((32, 4))
    with tf.GradientTape() as generator_tape, tf.GradientTape() as critic_tape:
        made = generator(noise, training=True)
        of_real, of_made = critic(real, training=True), critic(made, training=True)
        critic_loss = loss_of(tf.ones_like(of_real), of_real) + loss_of(tf.zeros_like(of_made), of_made)
        generator_loss = loss_of(tf.ones_like(of_made), of_made)
    gradients = critic_tape.gradient(critic_loss, critic.trainable_variables)
    of_critic.apply_gradients(zip(gradients, critic.trainable_variables))
    gradients = generator_tape.gradient(generator_loss, generator.trainable_variables)
    of_generator.apply_gradients(zip(gradients, generator.trainable_variables))
    if step % 100 == 0:
        print(f"step {step}: {float(critic_loss):.3f} {float(generator_loss):.3f} {float(tf.reduce_mean(made)):.3f}")
centre = float(tf.reduce_mean(generator(tf.random.normal((500, 4), seed=3))))
print(f"centre: {centre:.3f}")
weights = generator.get_weights() + critic.get_weights()
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in weights)).hexdigest())
