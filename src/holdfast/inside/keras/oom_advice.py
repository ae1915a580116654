"""One row at a time and still too big: what would help, each with what it would take. Estimates, and said to be."""

from __future__ import annotations

from typing import Any, Optional

MIB = 1 << 20


def would_help(model: Any, limit: Optional[int]) -> list[str]:
    weights = bytes_of(model.trainable_variables)
    slots = bytes_of(getattr(model.optimizer, "variables", ()))
    standing = 2 * weights + slots  # with the gradients
    row = max(0, (limit or 0) - standing)  # at least: it did not fit
    layers = max(1, len(model.layers))
    return [
        f"weights, gradients and optimizer take about {standing // MIB} MiB; one row at least {row // MIB} MiB more",
        f"mixed precision (keras.mixed_precision.set_global_policy('mixed_bfloat16')): about {row // 2 // MIB} MiB a row",
        f"recomputing activations (keras.RematScope): about {int(row / layers**0.5) // MIB} MiB a row, a third more time",
        f"sharding over two devices: about {standing // 2 // MIB} MiB on each for weights, gradients and optimizer",
        f"an optimizer without slots (SGD): {slots // MIB} MiB less",
    ]


def bytes_of(variables: Any) -> int:
    total = 0
    for variable in variables:
        size = 1
        for dimension in variable.shape:
            size *= int(dimension or 1)
        total += size * {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2}.get(str(variable.dtype), 4)
    return total
