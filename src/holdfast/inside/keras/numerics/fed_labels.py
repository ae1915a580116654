"""Labels of a Keras batch that the model has no output for, looked for before the step in the first epoch alone; once
some were found, in all. Only where Keras's own step hands them to its own loss as they are."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from ...fed_batches.events import TELLINGS, tell_labels, tell_left_out
from ...fed_batches.labels import BadLabels, LabelRange
from ...never_raise import guarded
from ...tensorflow.numerics.finiteness import array_of
from ...tensorflow.numerics.step_watch import Step
from .. import seams
from .batch_rows import content_of, rows_in, without_rows
from .data_source import sources
from .loss_kinds import loss_facts, the_loss
from .watch import ModelWatch

HANDED_ON_BY = ("train_step", "compute_loss")  # a script's own may change them before the loss


class FedLabels:
    """Of one model."""

    def __init__(self, watch: ModelWatch, epoch_iterator: Callable[[], Any]) -> None:
        self._watch, self._epoch_iterator = watch, epoch_iterator
        self._labels: Optional[LabelRange] = None
        self._looks = True
        self._found = False
        self._told = 0

    def aspect(self, step: Step) -> Step:
        look = guarded(self._look)

        def looked_at(batch: Any) -> Any:
            if self._looks:
                instead = look(batch)
                batch = batch if instead is None else instead
            return step(batch)

        return looked_at

    def is_alive(self) -> bool:
        return self._watch.is_alive()

    def epoch_is_over(self) -> None:
        self._looks = self._looks and self._found

    def _look(self, batch: Any) -> Any:
        """A batch to be trained on instead; None where it is as it should be."""
        if type(batch) is not tuple or len(batch) < 2:
            self._looks = False
            return None
        given = batch[1]
        if self._labels is None:
            self._labels = self._range()
            device = str(getattr(given, "device", "CPU"))
            self._looks = self._labels is not None and hasattr(given, "dtype") and "CPU" in device
            if not self._looks:
                return None
        array = array_of(given)
        rows = self._labels.find(array) if self._labels is not None and array.ndim else []
        return self._bad(self._labels, batch, array, rows) if self._labels is not None and rows else None

    def _range(self) -> Optional[LabelRange]:
        model = self._watch.model_ref()
        shape = getattr(model, "output_shape", None)
        own = any(not getattr(type(model), name).__module__.startswith("keras.") for name in HANDED_ON_BY)
        if own or loss_facts(model).get("family") != "sparse":
            return None
        if not isinstance(shape, tuple) or len(shape) < 2 or not isinstance(shape[-1], int):
            return None
        return LabelRange("y", shape[-1], getattr(the_loss(model), "ignore_class", None))

    def _bad(self, labels: LabelRange, batch: Any, array: Any, rows: List[int]) -> Any:
        watch = self._watch
        self._found = True
        bad = labels.told(array, rows)
        self._told += 1
        if self._told <= TELLINGS:
            self._add_places(bad, array)
            tell_labels(watch.recorder, bad, True)
        acts = watch.recorder.settings.get("policy") == "protect" and seams.on_one_device(watch.model_ref())
        if not acts or rows_in(batch, watch.tf) != len(array):
            return None
        contents = [content_of(batch, [row], watch.tf) for row in rows]
        if not labels.may_leave_out(len(array), contents):
            return None
        tell_left_out(watch.recorder, bad, labels.times)
        return without_rows(batch, rows, watch.tf)

    def _add_places(self, bad: BadLabels, array: Any) -> None:
        """Where each label that does not fit stands once in what `fit` was given."""
        for source in sources(self._epoch_iterator()):
            if source.shape[1:] != array.shape[1:] or source.dtype.kind not in "iuf" or len(source) <= len(array):
                continue
            places = []
            for row in bad["rows"]:
                same = (source == array[row]).reshape(len(source), -1).all(axis=1).nonzero()[0]
                places += [int(same[0])] if len(same) == 1 else []
            if places:
                bad["indices"] = places
                return
