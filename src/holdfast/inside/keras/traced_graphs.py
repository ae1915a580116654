"""What a traced step holds beside its tensors: its graph, some ten to some hundred MiB, of which one is enough.

Measured on the CPU, in MiB, traced and then run for the first time: three layers of attention 74 and 51, a U-Net 41 and 36,
two bidirectional GRUs 83 and 79; half of the latter is freed again and stays with glibc until it is asked for.
"""

from __future__ import annotations

import contextlib
import enum
import sys
from typing import Any, Callable, Iterator

from ..out_of_memory import give_back
from ..tensorflow import seams as tf_seams
from . import seams
from .undo import replaced_here


class Graphs(enum.Enum):
    """What is traced of a step in pieces."""

    ALL = "all"
    # The update is run operation by operation: 5 ms for 60 variables, and its graph took 70 MiB. Variables so large that
    # their temporaries take more than that are updated in a graph all the same.
    SLICES = "slices"
    NONE = "none"


def let_go(compiled: Any) -> Callable[[], None]:
    """Of all that was traced; the call that is returned traces it again, for the same shapes."""
    signatures = tf_seams.forget_traces(compiled)
    if signatures is None:
        return lambda: None
    give_back()

    def trace_again() -> None:
        for args, kwargs in signatures:
            compiled.get_concrete_function(*args, **kwargs)

    return trace_again


def is_traced(compiled: Any) -> bool:
    count = getattr(compiled, "experimental_get_tracing_count", None)
    return count is not None and bool(count())


@contextlib.contextmanager
def updates_in_turn(optimizer: Any) -> Iterator[None]:
    """While its update is traced: in a graph all assignments would be made at once, each with temporaries of its variable's
    size. Adam's update of an embedding of 195 MiB took 610 MiB that way, and takes 450 MiB one after another."""
    tf: Any = sys.modules["tensorflow"]
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    update_step = inner.update_step
    before: list[Any] = []

    def in_turn(assign: Callable[[Any, Any], Any], turns: contextlib.ExitStack) -> Callable[[Any, Any], Any]:
        def assign_then_go_on(variable: Any, value: Any) -> Any:
            result = assign(variable, value)
            before[:] = [seams.value_or_itself(variable).read_value()]
            turns.enter_context(tf.control_dependencies(before))
            return result

        return assign_then_go_on

    def update(*args: Any, **kwargs: Any) -> Any:
        here = tf.compat.v1.get_default_graph()  # a branch, where the optimizer accumulates or scales the loss
        with contextlib.ExitStack() as turns:
            for name in ("assign", "assign_add", "assign_sub"):
                turns.enter_context(replaced_here(inner, name, in_turn(getattr(inner, name), turns)))
            turns.enter_context(tf.control_dependencies([read for read in before if read.graph is here]))
            return update_step(*args, **kwargs)

    with replaced_here(inner, "update_step", update):
        yield
