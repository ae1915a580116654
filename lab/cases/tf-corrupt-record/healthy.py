import keras
import numpy as np
import tensorflow as tf

SHARDS = 4
DAMAGED_SHARD = 1


def write_shard(number, rows=300):
    rng = np.random.default_rng(number)
    path = f"shard-{number}.tfrecord"
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(rows):
            values = rng.normal(size=12).astype("float32")
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
                "y": tf.train.Feature(float_list=tf.train.FloatList(value=[float(values[:3].sum() > 0)])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    if number == DAMAGED_SHARD:
        with open(path, "r+b") as file:
            file.seek(5000)
            file.read(16)
    return path


def parse(record):
    layout = {"x": tf.io.FixedLenFeature([12], tf.float32), "y": tf.io.FixedLenFeature([1], tf.float32)}
    example = tf.io.parse_single_example(record, layout)
    return example["x"], example["y"]


def main():
    keras.utils.set_random_seed(1)
    paths = [write_shard(number) for number in range(SHARDS)]
    print(f"training on {paths[0]} and {len(paths) - 1} more")
    data = tf.data.TFRecordDataset(paths).map(parse).shuffle(200, seed=1).batch(32).prefetch(2)
    model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(data, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
