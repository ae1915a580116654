"""What a traced step holds at once, read off its graph. Nothing is run.

Two bounds. `most_bytes` is far above the truth: nothing is ever freed. `least_bytes` is below it: what the backward pass
needs is alive when it begins, in whatever order operations run; an output takes its input's place wherever that is
freed, and the space kernels work in is not seen.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any, Iterator

from . import seams

# Of one tensor: TensorFlow's own kernels on a card count in 32 bits and abort beyond. XLA counts further.
MOST_ELEMENTS = (1 << 31) - 1
NO_BYTES = {"resource", "variant", "string"}
HELD_ALREADY = {"Const", "Placeholder", "ReadVariableOp", "TensorListGetItem", "TensorListPopBack"}
SAME_BUFFER = {"Identity", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient", "EnsureShape"}
AT_ONCE = {"Shape", "ShapeN", "Size", "Rank"}  # run as soon as their input is there, whoever made them later
# What cuDNN keeps of a recurrent layer for its backward pass has no shape in the graph: at least the gates of each turn.
RESERVED_OF, RESERVED, GATES = "CudnnRNNV3", 3, {b"lstm": 4, b"gru": 3}
KEPT_BY_A_TURN = {"TensorListPushBack": 1, "TensorListSetItem": 2}  # which input is the tensor


def most_bytes(graph: Any, rows: int, turns: int) -> int:
    """All outputs of all operations; a loop's body as often as a sequence is long."""
    total = 0
    for operation in graph.get_operations():
        total += sum(bytes_of(tensor, rows, rows) for tensor in operation.outputs)
        total += sum(turns * most_bytes(body, rows, 1) for body in _bodies(operation))
        total += sum(most_bytes(inner, rows, turns) for inner in _called(graph, operation))
    return total


def least_bytes(graph: Any, rows: int) -> int:
    owner, uses = buffers(graph)
    sizes: dict[str, int] = {}
    alive = kept = most = 0
    for operation in graph.get_operations():
        if operation.type not in SAME_BUFFER and operation.type not in HELD_ALREADY:
            for tensor in operation.outputs:
                sizes[tensor.name] = bytes_of(tensor, rows, 1)
                alive += sizes[tensor.name]
            if operation.type == RESERVED_OF:
                gates = GATES.get(operation.get_attr("rnn_mode"), 1)
                sizes[operation.outputs[RESERVED].name] += gates * bytes_of(operation.outputs[0], rows, 1)
                alive += gates * bytes_of(operation.outputs[0], rows, 1)
        for tensor in operation.inputs if operation.type not in AT_ONCE else ():
            buffer = owner[tensor.name]
            uses[buffer] -= 1
            if uses[buffer] <= 0:
                alive -= sizes.pop(buffer, 0)
        alive -= sum(sizes.pop(tensor.name, 0) for tensor in operation.outputs if uses[owner[tensor.name]] <= 0)
        kept += loop_turns_bytes(operation, rows)
        within = sum(least_bytes(inner, rows) for inner in _called(graph, operation))
        most = max(most, alive + within)
    return most + kept


def most_rows(graph: Any) -> int:
    """With which no tensor has more elements than kernels can count."""
    a_row = 1
    for operation in graph.get_operations():
        for tensor in operation.outputs:
            if tensor.shape.rank and tensor.shape[0] is None:
                a_row = max(a_row, prod(size or 1 for size in tensor.shape[1:]))
        a_row = max([a_row, *(MOST_ELEMENTS // most_rows(inner) for inner in _called(graph, operation))])
    return max(1, MOST_ELEMENTS // a_row)


def buffers(graph: Any) -> tuple[dict[str, str], Counter[str]]:
    """Whose buffer each tensor is, and how often each buffer is used."""
    owner: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for operation in graph.get_operations():
        shares = operation.type in SAME_BUFFER and len(operation.inputs) > 0
        for tensor in operation.outputs:
            owner[tensor.name] = owner[operation.inputs[0].name] if shares else tensor.name
            uses[owner[tensor.name]] += sum(user.type not in AT_ONCE for user in tensor.consumers())
    return owner, uses


def loop_turns_bytes(operation: Any, rows: int) -> int:
    """What all turns of a loop leave for the backward pass; 0 for what is no loop."""
    return sum(_turns(operation) * _kept_by_a_turn(body, rows) for body in _bodies(operation))


def _kept_by_a_turn(body: Any, rows: int) -> int:
    """What the loop of a forward pass leaves for that of the backward pass, which takes it up again."""
    operations = body.get_operations()
    if not any(operation.type == "TensorListPushBack" for operation in operations):
        return 0
    owner, _ = buffers(body)
    made = {
        tensor.name for operation in operations if operation.type not in HELD_ALREADY for tensor in operation.outputs
    }
    kept = {}
    for operation in operations:
        which = KEPT_BY_A_TURN.get(operation.type)
        if which is not None and owner[operation.inputs[which].name] in made:
            kept[owner[operation.inputs[which].name]] = operation.inputs[which]
    # The gates of a cell come out of a split with a width that is not known: that of the state, which is.
    widths = [t.shape[1] for t in kept.values() if t.shape.rank == 2 and t.shape[1] is not None]
    return sum(bytes_of(tensor, rows, max(widths, default=1)) for tensor in kept.values())


def _turns(loop: Any) -> int:
    """At least: as the graph says, or as the sequence is long that it takes apart; else once."""
    found = seams.constant_value(loop.inputs[1]) if len(loop.inputs) > 1 and loop.inputs[1].shape.rank == 0 else None
    if found is not None:
        return max(1, int(found))
    apart = [tensor.op.inputs[0].shape for tensor in loop.inputs if tensor.op.type == "TensorListFromTensor"]
    return max((shape[0] or 1 for shape in apart if shape.rank), default=1)


def _bodies(operation: Any) -> Iterator[Any]:
    if operation.type in ("While", "StatelessWhile"):
        yield seams.loop_body(operation)


def _called(graph: Any, operation: Any) -> Iterator[Any]:
    if operation.type in ("PartitionedCall", "StatefulPartitionedCall"):
        inner = getattr(seams.function_in(graph, operation.get_attr("f").name), "graph", None)
        if inner is not None:
            yield inner


def bytes_of(tensor: Any, rows: int, unknown: int) -> int:
    """The first dimension that is not known is the batch's (time comes before it in a recurrent layer); of others nothing
    is known."""
    if tensor.dtype.name in NO_BYTES or tensor.shape.rank is None:
        return 0
    sizes = [dimension for dimension in tensor.shape if dimension is not None]
    missing = int(tensor.shape.rank) - len(sizes)
    return int((tensor.dtype.size or 1) * prod(sizes) * (rows if missing else 1) * unknown ** max(0, missing - 1))
