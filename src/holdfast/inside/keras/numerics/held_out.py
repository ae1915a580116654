"""Which classes are trained on and which are held out, counted once, at the first validation of arrays that `fit` was given."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from ...numerics.events import CLASSES, tell_held_out
from ...tensorflow.numerics.array_facts import labels_of
from .. import seams
from .watch import ModelWatch

ROWS = 100_000  # of each that are counted, evenly chosen


class HeldOut:
    """Of one model."""

    def __init__(self, watch: ModelWatch, epoch_iterator: Callable[[], Any]) -> None:
        self._watch, self._epoch_iterator = watch, epoch_iterator
        self._looks = True

    def is_alive(self) -> bool:
        return self._watch.is_alive()

    def validation_begins(self) -> None:
        model = self._watch.model_ref()
        iterator = seams.evaluation_iterator(model) if self._looks and model is not None else None
        if iterator is None:
            return
        self._looks = False
        trained, held_out = _labels(self._epoch_iterator()), _labels(iterator)
        if trained is None or held_out is None:
            return
        numpy: Any = sys.modules["numpy"]
        kinds = numpy.union1d(trained, held_out)
        if len(kinds) <= CLASSES:
            counts = [[int(kind), int((trained == kind).sum()), int((held_out == kind).sum())] for kind in kinds]
            tell_held_out(self._watch.recorder, self._watch.recorder.steps, counts)


def _labels(epoch_iterator: Any) -> Optional[Any]:
    adapter = getattr(epoch_iterator, "data_adapter", None)
    arrays = seams.arrays_of(adapter) if type(adapter).__name__ == "ArrayDataAdapter" else None
    if not isinstance(arrays, (tuple, list)) or len(arrays) < 2 or not hasattr(arrays[1], "__array__"):
        return None
    numpy: Any = sys.modules["numpy"]
    given = numpy.asarray(arrays[1])
    return labels_of(given[:: max(1, len(given) // ROWS)]) if given.ndim else None
