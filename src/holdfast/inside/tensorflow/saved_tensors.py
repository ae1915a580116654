"""What the backward pass of a traced step takes from its forward pass, by layer. Read off the graph; nothing is run."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, Set

from .graph_memory import HELD_ALREADY, buffers, bytes_of, loop_turns_bytes

BACKWARD = "gradient_tape/"
NUMBER = re.compile(r"_\d+$")
OUTSIDE = "(outside of any layer: the loss and what the step computes)"


def saved_by_layer(graph: Any, rows: int, layers: Iterable[str]) -> Dict[str, int]:
    """Bytes by name of a layer: tensors of the forward pass that the backward pass reads, each buffer once."""
    owner, _ = buffers(graph)
    made = {tensor.name: tensor for op in graph.get_operations() for tensor in op.outputs}
    layer_of = _layer_finder(set(layers))
    seen: Set[str] = set()
    found: Dict[str, int] = {}

    def add(name: str, size: int) -> None:
        if size:
            found[layer_of(name)] = found.get(layer_of(name), 0) + size

    for operation in graph.get_operations():
        if operation.name.startswith(BACKWARD):
            for tensor in operation.inputs:
                source = made[owner[tensor.name]]
                if source.name in seen or source.op.type in HELD_ALREADY or source.op.name.startswith(BACKWARD):
                    continue
                seen.add(source.name)
                add(source.op.name, bytes_of(source, rows, 1))
        else:
            add(operation.name, loop_turns_bytes(operation, rows))
    return found


def _layer_finder(layers: Set[str]) -> Callable[[str], str]:
    def of(operation: str) -> str:
        """The innermost layer that the operation was made in. A scope is named after its layer, with a number for each
        time that the layer was called in this graph."""
        for part in reversed(operation.split("/")[:-1]):
            numbered = NUMBER.sub("", part)
            if numbered in layers or part in layers:
                return numbered if numbered in layers else part
        return OUTSIDE

    return of
