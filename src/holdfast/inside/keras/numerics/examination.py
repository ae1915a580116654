"""One step of a Keras model, run operation by operation: which part of it is running, and which layer."""

from __future__ import annotations

import sys
from typing import Any, ContextManager, Iterator, List, Tuple

from ...tensorflow.numerics.examination import Examination, Examined, Leaf
from ...tensorflow.numerics.op_record import LOSS, METRIC, UPDATE
from .. import seams
from ..undo import optimizers_of, replaced, replaced_here

BATCH_PARTS = ("x", "y", "sample_weight")


def as_tensors(batch: Any, tf: Any) -> Any:
    """`train_on_batch` hands arrays on; what is made of them must be known again."""

    def one_of(leaf: Any) -> Any:
        if isinstance(leaf, tf.experimental.Optional):
            return None
        return tf.convert_to_tensor(leaf) if isinstance(leaf, sys.modules["numpy"].ndarray) else leaf

    return tf.nest.map_structure(one_of, batch)


def leaves_of(batch: Any, tf: Any) -> List[Tuple[str, Leaf]]:
    """Each with the part of the batch that it is of: x, y or sample_weight."""
    found = []
    for part, data in zip(BATCH_PARTS, seams.unpack(as_tensors(batch, tf))):
        leaves = [one for one in tf.nest.flatten(data) if one is not None]
        for number, leaf in enumerate(leaves):
            found.append((part, Leaf(_name(part, data, number, len(leaves)), part == "y", leaf)))
    return found


def _name(part: str, data: Any, number: int, count: int) -> str:
    if isinstance(data, dict) and len(data) == count:
        return f"{part}[{sorted(data)[number]!r}]"
    return part if count == 1 else f"{part}[{number}]"


def examined(model: Any, batch: Any, tf: Any) -> Examined:
    """What the step changes is for the caller to put back."""
    data = as_tensors(batch, tf)
    leaves = [leaf for _, leaf in leaves_of(data, tf)]
    examination = Examination(lambda: model.train_step(data), leaves, tf)
    return examination.examined(*_parts(model, examination))


def _parts(model: Any, examination: Examination) -> Iterator[ContextManager[Any]]:
    layer = seams.layer_class()
    yield replaced(layer, "__call__", examination.layer_call(layer.__call__, model))
    for phase, name in ((LOSS, "compute_loss"), (LOSS, "_compute_loss"), (METRIC, "compute_metrics")):
        if hasattr(model, name):
            yield replaced_here(model, name, examination.in_phase(phase, getattr(model, name)))
    for optimizer in optimizers_of(model):
        yield replaced_here(optimizer, "apply", examination.in_phase(UPDATE, optimizer.apply))
