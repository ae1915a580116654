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
            temperature = "20.0" if row == SENSOR_FAILS_AT else round(rng.normal(20, 3), 2)
            writer.writerow([temperature, round(rng.normal(1013, 8), 1), round(rng.random(), 3), rng.integers(0, 2)])


def check(*columns):
    features = tf.debugging.check_numerics(tf.stack(columns[:3]), "sensor readings")
    return features, columns[3]


def main():
    keras.utils.set_random_seed(37)
    write_log("sensors.csv")
    print("training on sensors.csv")
    missing = float("nan")
    data = tf.data.experimental.CsvDataset("sensors.csv", [missing, missing, missing, tf.float32])
    data = data.map(check).batch(20)
    model = keras.Sequential([keras.Input((3,)), keras.layers.BatchNormalization(), keras.layers.Dense(1, "sigmoid")])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(data, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
