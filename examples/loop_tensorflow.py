"""A GradientTape loop outside `holdfast run`: one line attaches a watcher, the loop stays as it is."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import holdfast

holdfast.attach(name="loop-tensorflow")

tf.random.set_seed(0)
x = tf.random.normal((2048, 20))
y = tf.cast(tf.reduce_sum(x, axis=1) > 0, tf.int64)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(2)])
optimizer = tf.keras.optimizers.Adam(1e-2)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(inputs, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(inputs, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for epoch in range(3):
    for inputs, labels in data:
        loss = train_step(inputs, labels)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
