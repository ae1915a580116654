"""A step run operation by operation, with a look at what each makes: where something non-finite began.

What is non-finite somewhere need not matter: a mask of -Inf, a logarithm that `where` leaves out. So the way is gone
backwards from the loss, the gradient or the new weight that is non-finite, along inputs that are, to the operation whose
inputs were all finite, or to what came from outside: the batch, a variable, a constant.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from types import FrameType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...numerics.user_lines import described, is_users
from .. import seams
from .finiteness import is_finite, is_float

FORWARD, LOSS, BACKWARD, UPDATE, METRIC = "forward", "loss", "backward", "update", "metric"
_of_user = functools.lru_cache(maxsize=None)(is_users)


class Place(NamedTuple):
    """Where an operation was called."""

    kind: str
    layer: Optional[str]
    phase: str
    path: str
    number: int

    def line(self) -> Optional[Tuple[str, str]]:
        return described(self.path, self.number) if self.path else None


class BadOp(NamedTuple):
    """An operation with a non-finite output."""

    order: int
    place: Place
    inputs: List[Any]
    outputs: List[Any]
    forward: Optional[Place]  # in a backward pass: the operation whose gradient this is part of


class Origin(NamedTuple):
    op: BadOp
    given: Any  # a non-finite tensor that no operation has made; None where all inputs were finite


class OpRecord:
    def __init__(self) -> None:
        self.phase = FORWARD
        self.layers: List[str] = []  # that are being called, the outermost first
        self.count = 0
        self.outermost: Any = None  # the code that runs the step
        self.written: List[Tuple[str, Any]] = []  # non-finite values that were assigned to variables, with their phase
        self._bad: Dict[int, BadOp] = {}  # by the id of an output
        self._places: Dict[int, Place] = {}  # of operations before the backward pass, by output

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        with seams.each_op(self._on_op):
            yield

    def _on_op(
        self, kind_of: Any, inputs: Any, _attributes: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is not None:
            return
        self.count += 1
        kind = kind_of.decode() if isinstance(kind_of, bytes) else str(kind_of)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        if kind.startswith(("Assign", "Resource")):
            self.written += [(self.phase, one) for one in inputs if is_float(one) and not is_finite(one)]
        is_bad = any(is_float(one) and not is_finite(one) for one in outputs)
        if self.phase == BACKWARD and not is_bad:
            return
        place = self._place(kind)
        if self.phase != BACKWARD:
            for one in outputs:
                self._places[seams.tensor_id(one)] = place
        if is_bad:
            forward = self._forward_of(sys._getframe(1)) if self.phase == BACKWARD else None
            bad = BadOp(self.count, place, list(inputs), list(outputs), forward)
            for one in outputs:
                if is_float(one) and not is_finite(one):
                    self._bad[seams.tensor_id(one)] = bad

    def _place(self, kind: str) -> Place:
        frame: Optional[FrameType] = sys._getframe(2)
        while frame is not None and not _of_user(frame.f_code.co_filename):
            # Beyond what runs the step is the script's call of it: `fit`, which is no place of an operation.
            frame = frame.f_back if frame.f_code is not self.outermost else None
        layer = self.layers[-1] if self.layers else None
        path, number = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        return Place(kind, layer, self.phase, path, number)

    def _forward_of(self, frame: Optional[FrameType]) -> Optional[Place]:
        for outputs in seams.forward_outputs(frame):
            for one in outputs:
                found = self._places.get(seams.tensor_id(one))
                if found is not None:
                    return found
        return None

    def origin_of(self, tensor: Any) -> Optional[Origin]:
        """None where no operation that was seen has made it."""
        op = self._bad.get(seams.tensor_id(tensor))
        while op is not None:
            bad = [one for one in op.inputs if is_float(one) and not is_finite(one)]
            if not bad:
                return Origin(op, None)
            makers = [self._bad[seams.tensor_id(one)] for one in bad if seams.tensor_id(one) in self._bad]
            makers = [one for one in makers if one.order < op.order]
            if not makers:
                return Origin(op, bad[0])
            op = min(makers, key=lambda one: one.order)
        return None
