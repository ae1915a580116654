"""What a step computes on the way to its loss, noted operation by operation in the first look: layers with nothing between them,
and a difference whose sides were spread over each other. Tensors are known by their number; none is kept."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .. import seams

MOST = 5000  # operations: a loop that is unrolled has more
SHAPES = frozenset({"Reshape", "Identity", "Cast", "Squeeze", "ExpandDims", "StridedSlice", "StopGradient"})
ADDS = frozenset({"BiasAdd", "AddV2", "Add"})
ACTIVATIONS = frozenset({"Softmax", "Sigmoid", "Tanh", "Relu", "LogSoftmax"})
DIFFERENCES = frozenset({"Sub", "SquaredDifference"})
READS = frozenset({"ReadVariableOp", "Identity", "Cast"})
DROPS = {"Mul": 0, "SelectV2": 1}  # of a dropout, with the place of what it is given
BEFORE = ("Normalization", "Rescaling")  # layers that a model may begin with

Shape = Tuple[int, ...]


class Op(NamedTuple):
    kind: str
    layer: str
    layer_kind: str
    inputs: Tuple[int, ...]
    shapes: Tuple[Shape, ...]


class ForwardOps:
    def __init__(self) -> None:
        self._layers: List[Tuple[str, str]] = []  # name and kind of those that are being called, the outermost first
        self._made_by: Dict[int, Op] = {}
        self._spread: List[Op] = []

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        with seams.each_op(self._on_op):
            yield

    @contextlib.contextmanager
    def within(self, layer: Any) -> Iterator[None]:
        self._layers.append((str(layer.name), type(layer).__name__))
        try:
            yield
        finally:
            self._layers.pop()

    def _on_op(
        self, kind_of: Any, inputs: Any, _attributes: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is not None or len(self._made_by) > MOST:
            return
        kind = kind_of.decode() if isinstance(kind_of, bytes) else str(kind_of)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        layer, layer_kind = self._layers[-1] if self._layers else ("", "")
        shapes = tuple(tuple(one.shape) for one in inputs)
        op = Op(kind, layer, layer_kind, tuple(map(seams.tensor_id, inputs)), shapes)
        for one in outputs:
            self._made_by[seams.tensor_id(one)] = op
        if kind in DIFFERENCES and outputs and is_spread(shapes, tuple(outputs[0].shape)):
            self._spread.append(op)

    def spread_over(self, given: Any) -> int:
        """How many rows of the model's output were compared with each row of what is none of it; 0 where none were."""
        number = seams.tensor_id(given)
        for op in self._spread:
            own = [number in self._ways(each) for each in op.inputs]
            sides = [self._past_shapes(each, number) == number for each in op.inputs]
            if sum(own) == 1 and own == sides:
                return max(map(max, op.shapes))
        return 0

    def _past_shapes(self, number: int, until: int) -> int:
        while number != until:
            op = self._made_by.get(number)
            if op is None or op.kind not in SHAPES:
                break
            number = op.inputs[0]
        return number

    def _ways(self, number: int) -> Set[int]:
        """What it was made of, and itself."""
        found: Set[int] = set()
        todo = [number]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                op = self._made_by.get(one)
                todo += op.inputs if op is not None else ()
        return found

    def linear_layers(self, given: Any) -> List[str]:
        """From first to last, where nothing but sums lies between what the model was given and what it gave, and no inner one is
        narrower than both ends."""
        number = self._past_shapes(seams.tensor_id(given), -1)
        last = self._made_by.get(number)
        if last is not None and last.kind in ACTIVATIONS:
            number = last.inputs[0]
        found: List[Tuple[str, Shape]] = []
        while number in self._made_by:
            op = self._made_by[number]
            if op.layer_kind in BEFORE:
                break
            nearer = self._nearer(op)
            if nearer is None:
                return []
            if op.kind == "MatMul":
                found.insert(0, (op.layer, op.shapes[1]))
            number = nearer
        if len(found) < 2 or not all(len(shape) == 2 for _, shape in found):
            return []
        ends = min(found[0][1][0], found[-1][1][1])
        return [] if min(shape[1] for _, shape in found[:-1]) < ends else [name for name, _ in found]

    def _nearer(self, op: Op) -> Optional[int]:
        """The input that comes from what the model was given; None where more is done than adding up."""
        if op.kind in SHAPES:
            return op.inputs[0]
        if op.layer_kind == "Dropout" and op.kind in DROPS:
            return op.inputs[DROPS[op.kind]]
        if op.kind in ("MatMul", *ADDS) and len(op.inputs) == 2 and self._is_variable(op.inputs[1]):
            return op.inputs[0]
        return None

    def _is_variable(self, number: int) -> bool:
        op = self._made_by.get(number)
        while op is not None and op.kind in READS:
            if op.kind == "ReadVariableOp":
                return True
            op = self._made_by.get(op.inputs[0])
        return False


def is_spread(shapes: Tuple[Shape, ...], made: Shape) -> bool:
    """A column of rows and a vector of as many became a square."""
    if len(made) != 2 or made[0] != made[1] or made[0] < 2:
        return False
    return sorted(shapes) == [(made[0],), (made[0], 1)]
