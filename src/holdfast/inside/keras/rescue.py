"""Out of memory in a step of Keras on TensorFlow: undone, and the same batch again in micro-batches."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator, Optional

from ..guard import guarded
from ..memory import forget, give_back, is_out_of_memory, wanted
from ..telemetry import Recorder
from ..tensorflow.forecast import Forecast
from .fit import shape_of
from .micro import Micro
from .pieces import Pieces
from .slices import rows_of, tail_of
from .undo import Keeper, replaced_here

Step = Callable[[Any], Any]


class Rescue:
    """For every model of this process."""

    def __init__(self, recorder: Recorder, tf: Any) -> None:
        self.recorder = recorder
        self.tf = tf
        settings = recorder.settings.get("rescue")
        self.on = tf is not None and recorder.settings.get("policy") == "protect" and isinstance(settings, dict)
        self.k = int((settings or {}).get("k") or 1) if self.on else 1
        self.forecast = Forecast(tf)
        self._said: set[str] = set()
        self._keeper: Optional[Keeper] = None

    @contextlib.contextmanager
    def while_making(self, model: Any) -> Iterator[None]:
        """Keras compiles what `model.train_step` is at that moment."""
        step = self._kept(model) if self.on else None
        if step is None:
            yield
            return
        with replaced_here(model, "train_step", step):
            yield

    @guarded
    def _kept(self, model: Any) -> Optional[Step]:
        if type(model.distribute_strategy).__name__ != "_DefaultDistributionStrategy":
            return None
        keeper = Keeper(self.tf)
        variable_class = sys.modules["keras.src.backend.tensorflow.core"].Variable
        step = keeper.keeping(model.train_step, model, variable_class)
        self._keeper = keeper
        return step

    def aspect(self, model_ref: Callable[[], Any], compiled: Any) -> Callable[[Step], Step]:
        """Of the training step that was made last."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return lambda step: step
        return _TrainingRescue(self, model_ref, keeper, compiled).around

    def say_once(self, kind: str, text: str, **data: object) -> None:
        if text not in self._said:
            self._said.add(text)
            self.recorder.event(kind, **data)


class _TrainingRescue:
    def __init__(self, rescue: Rescue, model_ref: Callable[[], Any], keeper: Keeper, compiled: Any) -> None:
        self._compiled = compiled if hasattr(compiled, "get_concrete_function") else None
        self._rescue = rescue
        self._model_ref = model_ref
        self._keeper = keeper
        self._micro: Optional[Micro] = None
        self._pieces = Pieces(rescue.k)

    def around(self, step: Step) -> Step:
        keeper, pieces = self._keeper, self._pieces
        foreseen: set[Any] = set()

        def rescued(batch: Any) -> Any:
            shape = shape_of(batch)
            if shape not in foreseen:
                foreseen.add(shape)
                self._foresee(batch)
            if pieces.whole:
                keeper.attempts += 1
                try:
                    return step(batch)
                except Exception as error:
                    if not is_out_of_memory(error) or not self._undone(error):
                        raise
                    self._caught(batch, error)
                    forget(error)
                give_back()
            return self._in_pieces(step, batch)

        return rescued

    @guarded
    def _foresee(self, batch: Any) -> None:
        """A step that may not fit is measured on a few rows first: at the limit TensorFlow may crash, not raise."""
        tf, forecast = self._rescue.tf, self._rescue.forecast
        if forecast.limit() is None or self._compiled is None:
            return
        rows, tail = rows_of(batch, tf), tail_of(batch, tf)
        turns = max((size for shape in tail for size in shape[:1]), default=1)
        if not forecast.could_exceed(self._compiled.get_concrete_function(batch), rows, turns):
            return
        micro = self._micro_step()
        micro.try_rows(batch, 1)
        fit = forecast.rows_that_fit(rows, lambda few: micro.try_rows(batch, few), micro.held_bytes())
        if fit is None:
            self._micro = None
            return
        self._pieces.foreseen(tail, fit)
        k = self._pieces.count(rows, tail)
        self._rescue.recorder.event("rescue.foreseen", rows=rows, k=k, limit_bytes=forecast.limit())
        self._rescue.recorder.event("rescue.k", k=k, where="train")

    def _in_pieces(self, step: Step, batch: Any) -> Any:
        """Until it fits. Each failure means smaller pieces; at one row there is nothing smaller."""
        tf = self._rescue.tf
        while True:
            rows, tail = rows_of(batch, tf), tail_of(batch, tf)
            k = self._pieces.count(rows, tail)
            if k == 1 and self._pieces.whole:
                self._keeper.attempts += 1
                return step(batch)
            try:
                logs = self._micro_step().run(batch, k)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if not self._slices_undone(error) or not self._caught(batch, error):
                    raise
                forget(error)
            else:
                self._pieces.fitted(rows, tail, k)
                return logs
            give_back()

    def _micro_step(self) -> Micro:
        if self._micro is None:
            model = self._model_ref()
            self._micro = Micro(model, model.train_step, self._rescue.tf)
        return self._micro

    def _undone(self, error: BaseException) -> bool:
        reason = guarded(self._keeper.put_back)()
        if reason:
            self._rescue.recorder.event("rescue.refused", reason=reason, wanted=wanted(error))
        return reason == ""

    def _slices_undone(self, error: BaseException) -> bool:
        micro = self._micro
        assert micro is not None
        reason = guarded(micro.put_back)()
        if reason:
            self._micro = None
            self._rescue.recorder.event("rescue.refused", reason=reason, wanted=wanted(error))
        return reason == ""

    def _caught(self, batch: Any, error: BaseException) -> bool:
        tf, recorder = self._rescue.tf, self._rescue.recorder
        rows, tail = rows_of(batch, tf), tail_of(batch, tf)
        k = self._pieces.count(rows, tail)
        grown = self._pieces.did_not_fit(rows, tail, k)
        recorder.event("rescue.caught", step=recorder.steps + 1, where="train", k=k, wanted=wanted(error))
        if grown is None:
            recorder.event("rescue.refused", reason="one row at a time does not fit", wanted=wanted(error))
            return False
        recorder.event("rescue.k", k=grown, where="train")
        return True
