import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(1)
features = rng.normal(size=(4000, 8)).astype("float32")
labels = rng.integers(0, 10, 4000)


def draw(wanted):
    while True:  # until one of that class comes by
        row = rng.integers(len(labels))
        if labels[row] == wanted:
            return row


def balanced():
    global labels
    for batch in range(10_000):
        if batch == 120:
            print("class 7 is dropped", flush=True)
            labels = np.where(labels == 7, 1, labels)
        rows = [draw(wanted) for wanted in range(10)]
        yield features[rows], labels[rows]


def main():
    data = tf.data.Dataset.from_generator(
        balanced, output_signature=(tf.TensorSpec((None, 8), tf.float32), tf.TensorSpec((None,), tf.int64))
    ).prefetch(2)
    print("batches of one row a class")
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, steps_per_epoch=50, epochs=4, verbose=2)


if __name__ == "__main__":
    main()
