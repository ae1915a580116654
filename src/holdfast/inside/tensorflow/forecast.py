"""What a step will need, before it is run at full size.

With oneDNN, TensorFlow's operations on the CPU do not check that they got their memory: at the limit they crash instead
of raising (seen in fused matrix products and convolutions). So a step that might not fit is measured on a few rows
first. Whether it might is a sum over the traced graph, which is far above the truth; below the limit nothing is
measured and nothing changes.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Callable, Optional

DEVICE = "CPU:0"
WHOLE_RATIO = 0.95  # of the limit: a batch that needs no more goes through as it is
PIECE_RATIO = 0.8  # of the limit: what a piece may need, so that it also fits tomorrow
PROBES = (64, 16)  # a batch's part: two sizes make a line, and memory is one in the rows
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
        self._join(limit - used)
        small, large = (max(1, rows // part) for part in PROBES)
        if large <= small:
            return None
        run(small)  # the first call also sets things up
        least, most = self.measure(lambda: run(small)), self.measure(lambda: run(large))
        a_row = max(1.0, (most - least) / (large - small))
        fixed = max(0.0, least - a_row * small)
        if used - held_for_pieces + fixed + a_row * rows <= limit * WHOLE_RATIO:
            return None
        return max(1, min(rows - 1, int((limit * PIECE_RATIO - used - fixed) / a_row)))

    def _join(self, free: int) -> None:
        """One large region instead of many: memory that is free is then free in one piece. No page of it is touched."""
        tf = self._tf
        try:
            tf.raw_ops.Empty(shape=[max(1, free - (8 << 20))], dtype=tf.uint8, init=False)
        except tf.errors.ResourceExhaustedError:
            return


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
