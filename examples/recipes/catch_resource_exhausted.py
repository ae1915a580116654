"""A batch that does not fit, caught and done in parts.

`except tf.errors.ResourceExhaustedError: print(...)` leaves the run as dead as before; and a smaller batch from there on is another training. Do the same
batch again in halves, add the gradients up with the weight of their rows, and update once: the step is the one you wrote.

Holdfast without this recipe: that is what `holdfast run` does to a Keras `fit` and to PyTorch loops as they are, with batch norm, dropout,
metrics and the loss scale put back before the retry, and it remembers for the next run how many parts it took.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import tensorflow as tf

FITS = 20  # rows; stands for a GPU that is too small


def gradients_of(model, loss_of, x, y, fits):
    if len(x) > fits:
        raise tf.errors.ResourceExhaustedError(None, None, f"OOM when allocating tensor with shape[{len(x)},…]")
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def step_in_parts(model, loss_of, x, y, *, fits=FITS, parts=1):
    """The loss and the gradients of the whole batch, and in how many parts it was done."""
    rows, size = len(x), -(-len(x) // parts)
    total, sums = 0.0, None
    try:
        for at in range(0, rows, size):
            part_x, part_y = x[at : at + size], y[at : at + size]
            loss, gradients = gradients_of(model, loss_of, part_x, part_y, fits)
            share = len(part_x) / rows  # parts may differ in size: a plain mean of means would be another loss
            total += share * float(loss)
            scaled = [share * gradient for gradient in gradients]
            sums = scaled if sums is None else [a + b for a, b in zip(sums, scaled, strict=True)]
    except tf.errors.ResourceExhaustedError:
        if size == 1:
            raise  # a single row does not fit: no smaller part is left
        return step_in_parts(model, loss_of, x, y, fits=fits, parts=2 * parts)
    return total, sums, parts


def main():
    keras.utils.set_random_seed(2)
    x = tf.random.normal([50, 6])
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    loss_of = keras.losses.MeanSquaredError()
    _, in_parts, parts = step_in_parts(model, loss_of, x, y)
    _, whole, _ = step_in_parts(model, loss_of, x, y, fits=1000)
    apart = max(float(tf.reduce_max(tf.abs(a - b))) for a, b in zip(in_parts, whole, strict=True))
    return {"parts": parts, "gradients_differ_by": apart}


if __name__ == "__main__":
    print(main())
