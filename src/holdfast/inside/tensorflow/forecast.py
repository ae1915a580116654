"""What a step will need, before it is run at full size.

With oneDNN, TensorFlow's operations on the CPU do not check that they got their memory: at the limit they crash instead
of raising (seen in fused matrix products and convolutions). So a step that might not fit is measured on a few rows
first. Whether it might is a sum over the traced graph, which is far above the truth; below the limit nothing is
measured and nothing changes.
"""

from __future__ import annotations

import functools
import os
from importlib import import_module
from typing import Any, Callable, Optional

from ..memory import is_out_of_memory

DEVICE = "CPU:0"
WHOLE_RATIO = 0.95  # of the limit: a batch that needs no more goes through as it is
PIECE_RATIO = 0.8  # of the limit: what a piece may need, so that it also fits tomorrow
FIRST_PART = 64  # of a batch: the smallest piece that is measured
SURELY = 1.3  # what a measurement may be short of: TensorFlow does not count tensors under 256 KiB
NO_BYTES = {"resource", "variant", "string"}


class Forecast:
    def __init__(self, tf: Any) -> None:
        self._tf = tf

    def limit(self) -> Optional[int]:
        """Of the allocator; None where there is none or it does not count."""
        words = os.environ.get("TF_MKL_ALLOC_MAX_BYTES", "")
        if words.isdigit() and self.used() is not None:
            return int(words)
        return None

    def used(self) -> Optional[int]:
        try:
            return int(self._tf.config.experimental.get_memory_info(DEVICE)["current"])
        except (ValueError, KeyError):
            return None

    def could_exceed(self, concrete: Any, rows: int, turns: int) -> bool:
        limit, used = self.limit(), self.used()
        if limit is None or used is None:
            return False
        return used + graph_bytes(concrete.graph, rows, max(1, turns)) > limit * PIECE_RATIO

    def measure(self, run: Callable[[], object]) -> int:
        """Bytes that a call needs beyond what is held."""
        self._tf.config.experimental.reset_memory_stats(DEVICE)
        before = self.used() or 0
        run()
        return int(self._tf.config.experimental.get_memory_info(DEVICE)["peak"]) - before

    def rows_that_fit(self, rows: int, run: Callable[[int], object], held_for_pieces: int) -> Optional[int]:
        """None where all of them do at once. `run` does a piece of so many rows, `held_for_pieces` is only held then."""
        limit, used = self.limit(), self.used()
        if limit is None or used is None:
            return None
        try:
            probe = self._probe(rows, run, limit * PIECE_RATIO - used)
        except TooMany as tried:
            return max(1, tried.rows // 2)
        if used - held_for_pieces + probe.at(rows) <= limit * WHOLE_RATIO:
            return None
        room = limit * PIECE_RATIO - used - probe.at(0)
        return max(1, min(rows - 1, int(room / probe.a_row)))

    def _probe(self, rows: int, run: Callable[[int], object], room: float) -> Line:
        """Twice as many rows each time, as long as the next ones surely fit. Small tensors go uncounted, so the last two
        measurements count."""
        few = max(1, rows // FIRST_PART)
        run(few)  # the first call also sets things up
        line = Line(0, 0, few, self.measure(lambda: run(few)))
        while 2 * few <= rows // 2 and line.at(2 * few) * SURELY < room:
            few *= 2
            try:
                line = Line(line.rows, line.bytes, few, self.measure(functools.partial(run, few)))
            except Exception as error:
                if is_out_of_memory(error):
                    raise TooMany(few) from None
                raise
        return line


class TooMany(Exception):
    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


class Line:
    """Memory over rows, through two measurements."""

    def __init__(self, rows_before: int, bytes_before: int, rows: int, needed: int) -> None:
        self.rows, self.bytes = rows, needed
        self.a_row = max(1.0, (needed - bytes_before) / (rows - rows_before))

    def at(self, rows: int) -> float:
        return max(0.0, self.bytes + self.a_row * (rows - self.rows))


def graph_bytes(graph: Any, rows: int, turns: int) -> int:
    """All outputs of all operations, as if nothing were ever freed; a loop's body as often as a sequence is long."""
    total = 0
    for operation in graph.get_operations():
        total += sum(_bytes(tensor, rows) for tensor in operation.outputs)
        if operation.type in ("While", "StatelessWhile"):
            total += turns * graph_bytes(_body(operation), rows, 1)
        elif operation.type in ("PartitionedCall", "StatefulPartitionedCall"):
            called = graph._get_function(operation.get_attr("f").name)
            inner = getattr(called, "graph", None)
            total += graph_bytes(inner, rows, turns) if inner is not None else 0
    return total


def _bytes(tensor: Any, rows: int) -> int:
    if tensor.dtype.name in NO_BYTES or tensor.shape.rank is None:
        return 0
    size = tensor.dtype.size or 1
    for dimension in tensor.shape:
        size *= rows if dimension is None else dimension
    return int(size)


def _body(loop: Any) -> Any:
    util: Any = import_module("tensorflow.python.ops.control_flow_util_v2")
    return util.get_func_graph(loop, [tensor.shape for tensor in loop.inputs], loop.get_attr("body").name)
