"""A batch of Keras's in another size: its first rows, or all of them several times over."""

from __future__ import annotations

from typing import Any

from .batch_slices import cut


def resized(batch: Any, rows: int, wanted: int, tf: Any) -> Any:
    if wanted <= rows:
        return cut(batch, 0, wanted, tf)
    times, rest = divmod(wanted, rows)
    parts = [batch] * times + ([cut(batch, 0, rest, tf)] if rest else [])

    def joined(*leaves: Any) -> Any:
        if leaves[0] is None or isinstance(leaves[0], tf.experimental.Optional):
            return None
        if isinstance(leaves[0], tf.SparseTensor):
            return tf.sparse.concat(0, list(leaves))
        return tf.concat(list(leaves), axis=0)

    return tf.nest.map_structure(joined, *parts)
