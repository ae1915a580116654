import logging
import sys

import tensorflow as tf

COUNT = 400


def distances(points):
    return tf.reduce_sum((points[:, None, :] - points[None, :, :]) ** 2, -1)


def main():
    points, scale = tf.random.normal((COUNT, 4)), tf.Variable(tf.ones(4))
    print(f"{COUNT} points", flush=True)
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(distances(points * scale))
        scale.assign_sub(0.01 * tape.gradient(loss, scale))
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        logging.exception("the run failed")
        code = 3
    sys.exit(code)
