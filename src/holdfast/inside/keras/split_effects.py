"""What is not the same in pieces, and by how much: measured once, on the first batch that is cut. Keras on any backend."""

from __future__ import annotations

import sys
from typing import Any

from ..disclosed_effects import apart, texts
from . import seams


class Effects:
    def __init__(self, model: Any) -> None:
        layers = list(seams.layers_of(model))
        self._normalising = [layer for layer in layers if "BatchNorm" in type(layer).__name__]
        self._draws = any(_draws(layer) for layer in layers)
        self._before: list[tuple[Any, Any]] = []
        self._slices: list[list[tuple[Any, Any]]] = []
        self._measured = ""
        self._rows = 0

    def begins(self, rows: int) -> None:
        """Of the first batch, with pieces of so many rows."""
        if self._normalising and not self._measured:
            self._rows = rows
            self._before, self._slices = [_statistics(layer) for layer in self._normalising], []

    def sliced(self) -> None:
        """Each slice starts from the same statistics, so what it leaves says what it saw."""
        if self._before:
            self._slices.append([_statistics(layer) for layer in self._normalising])

    def ends(self) -> None:
        if not self._before or len(self._slices) < 2:
            return
        means, variances = zip(*(self._spread(number) for number in range(len(self._normalising))))
        self._measured = apart(len(self._slices), max(means), max(variances))
        self._before, self._slices = [], []

    def _spread(self, number: int) -> tuple[float, float]:
        """Root mean square over features, in units of what the batch has."""
        ops: Any = sys.modules["keras"].ops
        layer, (mean_before, variance_before) = self._normalising[number], self._before[number]
        kept = float(layer.momentum)
        means = ops.stack([(mean - kept * mean_before) / (1 - kept) for mean, _ in (s[number] for s in self._slices)])
        variances = ops.stack([(v - kept * variance_before) / (1 - kept) for _, v in (s[number] for s in self._slices)])
        size = ops.mean(variances, axis=0) + 1e-12
        of_mean = ops.mean(ops.var(means, axis=0) / size)
        of_variance = ops.mean(ops.var(variances, axis=0) / (size * size))
        return float(of_mean) ** 0.5, float(of_variance) ** 0.5

    def texts(self) -> list[str]:
        return texts(len(self._normalising), self._rows, self._measured, self._draws)


def _draws(layer: Any) -> bool:
    """At random, in training. A layer of attention has a dropout inside that is mostly of rate 0."""
    kind = type(layer).__name__
    if "Dropout" in kind or "Noise" in kind:
        return bool(getattr(layer, "rate", getattr(layer, "stddev", 1)))
    return bool(getattr(layer, "dropout", 0)) and "Attention" not in kind


def _statistics(layer: Any) -> tuple[Any, Any]:
    ops: Any = sys.modules["keras"].ops
    mean, variance = getattr(layer, "moving_mean", None), getattr(layer, "moving_variance", None)
    return tuple(ops.cast(ops.copy(value), "float32") for value in (mean, variance))
