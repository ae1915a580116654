"""A gradient in few numbers, for comparing one with another: copies of both may not fit.

Each number is the sum of many entries, half of them with a minus. Sketches of parts add up to that of the whole, and the
distance of two sketches is about that of the gradients. That of plain sums is not: where positive and negative entries
cancel, rounding is what is left. With them six layers of 4096 units were refused on a GPU with TensorFlow's default
rounding (TF32).
"""

from __future__ import annotations

from typing import Any

NUMBERS = 4096  # of each variable's gradient


def sketch(gradient: Any, size: int, part: Any, tf: Any) -> Any:
    """Of a variable with so many entries, times `part`. In a graph the gradient's own shape may not be known."""
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.reshape(gradient.values, [tf.shape(gradient.values)[0], -1])
        rows = tf.linalg.matvec(values, _signs(tf.shape(values)[1], values.dtype, tf))
        numbers = tf.math.unsorted_segment_sum(rows, tf.cast(gradient.indices, tf.int32) % NUMBERS, NUMBERS)
    else:
        flat = tf.reshape(gradient, [size])
        width = min(NUMBERS, size)
        even = size // width * width
        lines = tf.reshape(flat[:even], [-1, width])  # the same buffer
        numbers = tf.linalg.matvec(lines, _signs(tf.shape(lines)[0], flat.dtype, tf), transpose_a=True)
        numbers = tf.concat([numbers, flat[even:]], axis=0)
    return tf.cast(numbers, tf.float64) * tf.cast(part, tf.float64)


def _signs(count: Any, dtype: Any, tf: Any) -> Any:
    """Plus and minus one without a pattern; nothing is drawn, since the script's random numbers are its own."""
    numbers = tf.range(tf.cast(count, tf.int64), dtype=tf.int64) * 2654435761  # Knuth's multiplicative hash
    return tf.cast(1 - 2 * (numbers // 65536 % 2), dtype)
