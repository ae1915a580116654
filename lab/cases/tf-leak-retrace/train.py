import tensorflow as tf

WIDTH, BATCH = 256, 64


def build():
    layers = [tf.keras.layers.Dense(WIDTH, activation="gelu") for _ in range(4)]
    return tf.keras.Sequential([tf.keras.Input((WIDTH,)), *layers, tf.keras.layers.Dense(1)])


model = build()
optimizer = tf.keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x, y, temperature):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) / temperature - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def main():
    tf.random.set_seed(11)
    print("training with a falling temperature")
    for step in range(45):
        x = tf.random.normal((BATCH, WIDTH))
        loss = train_step(x, tf.reduce_sum(x, 1, keepdims=True), 2.0 * 0.99**step)
        if step % 20 == 19:
            print(f"step {step + 1}: loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
