"""The layer that gives an output, and the activation it ends in."""

from __future__ import annotations

from typing import Any, Optional

from ...numerics.events import LastLayer


def last_layer(layer: Any, given: Any) -> LastLayer:
    shape = list(given.shape)
    found: LastLayer = {
        "layer": str(layer.name),
        "kind": type(layer).__name__,
        "activation": activation_of(layer),
    }
    if shape and len(shape) > 1:
        found["units"] = int(shape[-1])
    return found


def activation_of(layer: Any) -> Optional[str]:
    """softmax, sigmoid, tanh, relu, linear …; None of a layer without one."""
    function = getattr(layer, "activation", None)
    if function is not None:
        return str(getattr(function, "__name__", type(function).__name__)).lower()
    kind = type(layer).__name__
    return kind.lower() if kind in ("ReLU", "LeakyReLU", "ELU", "PReLU", "Softmax") else None
