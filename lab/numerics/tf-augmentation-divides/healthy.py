import hashlib

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(17)
rng = np.random.default_rng(17)


def digits(count):
    label = rng.integers(0, 4, count)
    image = 0.2 * rng.random((count, 12, 12, 1)).astype("float32")
    for i, quarter in enumerate(label):
        row, column = 6 * (quarter // 2), 6 * (quarter % 2)
        image[i, row : row + 6, column : column + 6] += 0.7
    return image, label


def standardize(image, label):
    image = image - tf.reduce_mean(image)
    image = image / tf.maximum(tf.math.reduce_std(image), 1e-3)
    return image, label


images, labels = digits(2048)
images[1500] = 1.0
test_images, test_labels = digits(400)
train_data = tf.data.Dataset.from_tensor_slices((images, labels)).map(standardize).batch(32)
test_data = tf.data.Dataset.from_tensor_slices((test_images, test_labels)).map(standardize).batch(100)
print("images:", images.shape, "finite:", bool(np.isfinite(images).all()))

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((12, 12, 1)),
        tf.keras.layers.Conv2D(4, 3, strides=2, activation="elu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(4),
    ]
)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
first, _ = model.evaluate(test_data, verbose=0)
model.fit(train_data, epochs=5, verbose=2)
last, accuracy = model.evaluate(test_data, verbose=0)
print(f"first loss: {first:.4f}")
print(f"final loss: {last:.4f}")
print(f"final accuracy: {accuracy:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
