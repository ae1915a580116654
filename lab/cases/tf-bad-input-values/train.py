import csv

import keras
import numpy as np
import tensorflow as tf

SENSOR_FAILS_AT = 600


def write_log(path, count=1000):
    rng = np.random.default_rng(37)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for row in range(count):
            temperature = "" if row == SENSOR_FAILS_AT else round(rng.normal(20, 3), 2)
            writer.writerow([temperature, round(rng.normal(1013, 8), 1), round(rng.random(), 3), rng.integers(0, 2)])


def rows(path):
    with open(path) as file:
        for line in csv.reader(file):
            values = [float(field) if field else float("nan") for field in line]
            yield np.array(values[:3], "float32"), np.float32(values[3])


def check(features, label):
    return tf.debugging.check_numerics(features, "sensor readings"), label


def main():
    keras.utils.set_random_seed(37)
    write_log("sensors.csv")
    print("training on sensors.csv")
    signature = (tf.TensorSpec((3,), tf.float32), tf.TensorSpec((), tf.float32))
    data = tf.data.Dataset.from_generator(lambda: rows("sensors.csv"), output_signature=signature)
    data = data.map(check).batch(20)
    model = keras.Sequential([keras.Input((3,)), keras.layers.BatchNormalization(), keras.layers.Dense(1, "sigmoid")])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(data, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
