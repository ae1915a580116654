"""What a step of a Keras model on TensorFlow is made of, told from its variables and its traced graph."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List

from ..plan.rounds import Anatomy
from ..tensorflow.saved_tensors import saved_by_layer


class KerasAnatomy(Anatomy):
    def __init__(self, tf: Any, model: Any) -> None:
        self._tf, self._model = tf, model
        self.graph: Any = None
        self.kept_bytes = self._batch_bytes = self._rows = 0

    def given(self, batch: Any, first: Any) -> None:
        self._batch_bytes, self.kept_bytes = (_nest_bytes(data, self._tf) for data in (batch, first))
        sized = [leaf for leaf in self._tf.nest.flatten(batch) if getattr(leaf, "shape", None)]
        self._rows = int(sized[0].shape[0]) if sized else 0

    def facts(self) -> Dict[str, Any]:
        model, optimizer = self._model, getattr(self._model, "optimizer", None)
        layers = [layer.name for layer in _all_layers(model)]
        saved = saved_by_layer(self.graph, self._rows, layers) if self.graph is not None else {}
        ordered = sorted(saved.items(), key=lambda pair: -pair[1])
        told = {
            "framework": "keras", "rows": self._rows, "weights": bytes_of(model.variables),
            "gradients": bytes_of(model.trainable_variables), "batch_bytes": self._batch_bytes,
            "optimizer": bytes_of(getattr(optimizer, "variables", ())),
            "layers": [{"name": name, "bytes": size} for name, size in ordered[:10]],
            "optimizers": [type(optimizer).__name__] if optimizer is not None else [],
            "layer_weights": self._weights_by_layer(),
            "half": "16" in str(getattr(getattr(model, "dtype_policy", None), "compute_dtype", "")),
        }  # fmt: skip
        return {**told, "activations": sum(saved.values())} if saved else told

    def _weights_by_layer(self) -> Dict[str, int]:
        own = {layer.name: bytes_of(layer.variables) for layer in _all_layers(self._model) if not _sublayers(layer)}
        return dict(sorted(own.items(), key=lambda pair: -pair[1])[:20])


def bytes_of(variables: Iterable[Any]) -> int:
    """Of Keras's or TensorFlow's variables."""
    total = 0
    for variable in variables:
        name = str(getattr(variable.dtype, "name", variable.dtype))
        bits = int("".join(c for c in name if c.isdigit()) or 8)
        total += math.prod(int(size) for size in variable.shape) * max(1, bits // 8)
    return total


def _nest_bytes(batch: Any, tf: Any) -> int:
    total = 0
    for leaf in tf.nest.flatten(batch):
        size = getattr(getattr(leaf, "dtype", None), "size", None) or getattr(
            getattr(leaf, "dtype", None), "itemsize", 0
        )
        shape = getattr(leaf, "shape", None)
        if size and shape is not None and all(dimension is not None for dimension in shape):
            total += int(size) * math.prod(int(dimension) for dimension in shape)
    return total


def _sublayers(layer: Any) -> List[Any]:
    return list(getattr(layer, "layers", None) or [])


def _all_layers(model: Any) -> List[Any]:
    found: List[Any] = []
    for layer in _sublayers(model):
        found += [layer, *_all_layers(layer)]
    return found
