"""Gradients that are rows of a table, some of one place: kept piece by piece until the update.

An optimizer that squares rows before it adds them up must get all rows of the batch as they are. They are written into one
buffer as they come: joined at the end they would be there twice, and they may be the largest thing that a step has.
"""

from __future__ import annotations

from typing import Any

Rows = dict[str, tuple[Any, Any]]  # by table: values, and where they belong


class GatheredRows:
    """Of one batch."""

    def __init__(self, rows: int, tf: Any) -> None:
        self._batch, self._tf = rows, tf
        self._values: dict[str, _Buffer] = {}
        self._where: dict[str, list[Any]] = {}

    def add(self, part: Rows, rows: int) -> None:
        """What a piece of so many rows of the batch has left."""
        for name, (values, where) in part.items():
            if name not in self._values:
                self._values[name] = _Buffer(int(values.shape[0]) * self._batch // max(1, rows), self._tf)
            self._values[name].add(values)
            self._where.setdefault(name, []).append(where)

    def joined(self) -> Rows:
        """All of them; nothing is kept here afterwards."""
        tf, found = self._tf, {}
        for name in list(self._values):
            values = self._values.pop(name).joined()
            found[name] = (values, tf.concat(self._where.pop(name), axis=0))
        return found


class _Buffer:
    """Of as many rows as the first piece lets expect; where there are more or fewer (ragged rows), they are joined after all."""

    def __init__(self, expected: int, tf: Any) -> None:
        self._expected, self._tf = expected, tf
        self._filled = 0
        self._tensor: Any = None
        self._loose: list[Any] = []

    def add(self, values: Any) -> None:
        tf, count = self._tf, int(values.shape[0])
        if self._loose or self._filled + count > self._expected:
            self._loose.append(values)
            return
        try:
            if self._tensor is None:
                shape = [self._expected, *values.shape[1:]]
                self._tensor = tf.raw_ops.Empty(shape=shape, dtype=values.dtype, init=False)
            places = tf.range(self._filled, self._filled + count)
            tf.raw_ops.InplaceUpdate(x=self._tensor, i=places, v=values)
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            self._loose.append(values)  # no such operation for this type on this device
            return
        self._filled += count

    def joined(self) -> Any:
        if self._tensor is not None and self._filled == self._expected and not self._loose:
            return self._tensor
        begun = [] if self._tensor is None else [self._tensor[: self._filled]]
        return self._tf.concat([*begun, *self._loose], axis=0)
