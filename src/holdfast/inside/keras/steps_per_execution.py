"""Several steps at once (`steps_per_execution`): Keras pulls their batches inside one compiled loop, and a failed one is
gone. So the first of them are run one by one, with their memory measured; where there is room, Keras's loop takes over. Once
numbers went bad they are run one by one, too. What is saved is the state between two such executions.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable

from ..telemetry import now
from ..tensorflow.nesting import nesting
from .checkpoint import CheckpointWriter
from .fit_progress import Fit


def one_by_one(
    whole: Callable[[Any], Any],
    step: Callable[[Any], Any],
    fit: Fit,
    count: int,
    rescued: Any,
    executions: Any,
    tf: Any,
) -> Callable[[Any], Any]:
    """`rescued`, `executions`: of memory and of numerics; None where that is off."""
    seen: list[Any] = [lambda: None]  # the iterator whose first steps were run here

    def wanted(iterator: Any) -> bool:
        if not tf.executing_eagerly() or not isinstance(iterator, tf.data.Iterator):
            return False
        if executions is not None and executions.one_by_one:
            return True
        return rescued is not None and (rescued.at_risk or seen[0]() is not iterator)

    def train_function(iterator: Any) -> Any:
        if not wanted(iterator):
            return whole(iterator) if executions is None else executions.run(whole, iterator)
        seen[0] = weakref.ref(iterator)
        nesting.depth += 1
        try:
            if executions is not None:
                executions.before_alone()
            logs = None
            for number in range(count):
                began = now()
                try:
                    batch = iterator.get_next()
                except tf.errors.OutOfRangeError:
                    if not number:
                        raise
                    break
                fit.pulled(now() - began, batch)
                logs = step(batch)
            return logs
        finally:
            nesting.depth -= 1

    return train_function


def kept_between(
    run: Callable[[Any], Any], keep: CheckpointWriter, build: Callable[[Any], object], count: Callable[[], int], tf: Any
) -> Callable[[Any], Any]:
    """`build`: traces the step for an iterator's batches, so that all variables are there that a checkpoint is put into."""
    seen: list[Any] = [lambda: None]

    def train_function(iterator: Any) -> Any:
        call = keep.call
        if call is None or not tf.executing_eagerly() or not isinstance(iterator, tf.data.Iterator):
            return run(iterator)
        if seen[0]() is not iterator:
            seen[0] = weakref.ref(iterator)
            if call.restore is not None:
                build(iterator)
            keep.fresh(iterator)
        if now() >= keep.next_at:
            keep.approach(iterator)
        keep.before_step(call)
        result = run(iterator)
        call.position.trained(count())
        return result

    train_function.prepare_for = build  # type: ignore[attr-defined]
    return train_function
