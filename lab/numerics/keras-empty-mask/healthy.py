import hashlib

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(14)
rng = np.random.default_rng(14)


def depth_images(count):
    depth = rng.uniform(0.2, 1.0, size=(count, 8, 8, 1)).astype("float32")
    depth = (depth + np.roll(depth, 1, 1) + np.roll(depth, 1, 2)) / 3
    image = np.concatenate([depth + 0.05 * rng.normal(size=depth.shape), 1 - depth], axis=-1).astype("float32")
    return image, depth


def masked_mse(y_true, y_pred):
    valid = tf.cast(y_true > 0, tf.float32)
    return tf.reduce_sum(valid * tf.square(y_true - y_pred)) / tf.maximum(tf.reduce_sum(valid), 1.0)


images, depths = depth_images(1600)
depths[640:672] = 0.0
test_images, test_depths = depth_images(200)
print(len(images), "depth images")

model = keras.Sequential(
    [
        keras.Input((8, 8, 2)),
        keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(1, 1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.003), loss=masked_mse)
print(f"first loss: {model.evaluate(test_images, test_depths, verbose=0):.5f}")
model.fit(images, depths, batch_size=32, epochs=5, shuffle=False, verbose=2)
print(f"final loss: {model.evaluate(test_images, test_depths, verbose=0):.5f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
