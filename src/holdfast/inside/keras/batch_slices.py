"""A batch of Keras's, cut along its first axis. TensorFlow tensors, NumPy arrays, None, and nests of them."""

from __future__ import annotations

from typing import Any, Optional

from ..rescue_engine import CannotSplit


def rows_of(data: Any, tf: Any) -> int:
    sizes = {int(size) for leaf in tf.nest.flatten(data) if (size := _rows(leaf, tf)) is not None}
    if len(sizes) != 1:
        raise CannotSplit("its inputs do not share a first axis")
    return sizes.pop()


def _rows(leaf: Any, tf: Any) -> Optional[int]:
    if leaf is None or isinstance(leaf, tf.experimental.Optional):
        return None
    if isinstance(leaf, tf.RaggedTensor):
        return int(leaf.nrows())
    shape = getattr(leaf, "shape", None)
    if shape is None or len(shape) == 0:
        raise CannotSplit("one of its inputs has no first axis")
    return int(shape[0])


def cut(data: Any, begin: int, end: int, tf: Any) -> Any:
    def piece(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, tf.experimental.Optional):
            return None
        if isinstance(leaf, tf.SparseTensor):
            size = tf.concat([[end - begin], leaf.dense_shape[1:]], axis=0)
            start = tf.concat([[begin], tf.zeros_like(leaf.dense_shape[1:])], axis=0)
            return tf.sparse.slice(leaf, start, size)
        if isinstance(leaf, tf.RaggedTensor):
            return leaf[begin:end]
        # Where it lies: cut on a card, all of a batch that lies in the host's memory would be copied there first.
        with tf.device(getattr(leaf, "device", None) if tf.executing_eagerly() else None):
            return tf.convert_to_tensor(leaf[begin:end])

    return tf.nest.map_structure(piece, data)


def open_ended(data: Any, tf: Any) -> Any:
    """The specification of a slice of any number of rows: one trace for all of them."""

    def spec(leaf: Any) -> Any:
        if leaf is None:
            return None
        if isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor)):
            return tf.type_spec_from_value(leaf)
        return tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype)

    return tf.nest.map_structure(spec, data)


def tail_of(data: Any, tf: Any) -> tuple[Any, ...]:
    """The shapes beyond the first axis: what fits for one sequence length need not for another."""
    return tuple(tuple(getattr(leaf, "shape", ()))[1:] for leaf in tf.nest.flatten(data) if leaf is not None)
