import keras
import numpy as np
import tensorflow as tf

WINDOW, STEPS = 4096, 220


def stream():
    rng = np.random.default_rng(107)
    while True:
        window = rng.normal(size=(WINDOW, 4)).astype("float32")
        yield window, np.float32(window[:, 0].mean() > 0)


def main():
    keras.utils.set_random_seed(107)
    signature = (tf.TensorSpec((WINDOW, 4), tf.float32), tf.TensorSpec((), tf.float32))
    data = tf.data.Dataset.from_generator(stream, output_signature=signature)
    data = data.shuffle(800, seed=107).batch(8).prefetch(64)
    print("training from a stream")
    model = keras.Sequential(
        [
            keras.Input((WINDOW, 4)),
            keras.layers.Conv1D(8, 16, strides=8, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(data, steps_per_epoch=STEPS // 2, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
