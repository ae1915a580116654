"""The batches as a tf.data.Dataset.

Each pass draws a number by which its rows are ordered. tf.data counts such draws when an iterator is made, so whoever makes as
many iterators as before gets the same order again: that is how checkpoints find their place in data of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from holdfast.data.stream.dataset import Dataset
    from holdfast.data.stream.source import Column

AHEAD = 2  # batches that are tensors already


def tensorflow_dataset(data: Dataset) -> Any:
    def batches(drawn: int = 0) -> Iterator[Any]:
        for _, batch in data.batches(int(drawn)):
            yield batch

    signature = data.described(_described)
    if data.shuffles:
        drawn = tf.data.Dataset.random(seed=data.seed, rerandomize_each_iteration=True).take(1)
        found = drawn.flat_map(
            lambda one: tf.data.Dataset.from_generator(batches, args=(one,), output_signature=signature)
        )
    else:
        found = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return found.apply(tf.data.experimental.assert_cardinality(len(data))).prefetch(AHEAD)


def _described(column: Column) -> Any:
    dtype = tf.string if column.dtype.hasobject else tf.as_dtype(np.dtype(column.dtype))
    return tf.TensorSpec((None, *column.shape), dtype, column.name)
