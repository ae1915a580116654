"""Out of memory in a step of Keras on TensorFlow: the driver of the one rescue engine, for training, evaluation, prediction.

On the CPU without a budget there is no error to catch, only the kernel's kill. Then Keras's compiled step stays as it is,
and all that happens is a look at each new shape of batch: whether it can fit at all. Where running out of memory is an
error (a budget, a GPU), the step is traced so that a failed one can be undone (`undo.py`).

A step compiled by XLA is another matter (`xla.py`): one that failed may have lost the variables it was to update.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any, Callable, Iterator, Optional

from ..never_raise import guarded
from ..out_of_memory import give_back
from ..piece_sizes import Pieces
from ..rescue_engine import CannotSplit, Driver, Engine, MustStartAgain
from ..settings import rescue_wanted
from ..telemetry import Recorder
from ..tensorflow.budget import pages_are_given_back
from ..tensorflow.memory_forecast import CardForecast, Forecast, ResidentForecast
from ..tensorflow.nvml import on_gpu
from . import seams
from .batch_slices import rows_of, tail_of
from .fit_progress import shape_of
from .foresight import Foresight
from .micro_batches import SlicedStep
from .oom_advice import bytes_of, would_help
from .traced_graphs import Graphs, let_go
from .undo import UndoLog, replaced_here
from .xla import XlaStep, compiled_by_xla

Step = Callable[[Any], Any]
LOOK_AGAIN_RATIO = 1.05  # a look takes some milliseconds: not for every length a sequence may have
GRAPH_UP_TO_ATTEMPT = 2
STEPS = {"train": "train_step", "evaluate": "test_step"}


class Rescue:
    """For every model of this process."""

    def __init__(self, recorder: Recorder, tf: Any, able: bool = True) -> None:
        self.recorder = recorder
        self.tf = tf
        settings = recorder.settings.get("rescue")
        self.asked = rescue_wanted(recorder.settings)
        self.wanted = self.asked and able
        self.settings: dict[str, Any] = settings if self.wanted and isinstance(settings, dict) else {}
        self.on = self.wanted and tf is not None
        self.k = int(self.settings.get("k") or 1)
        self.anew = not has_checkpoint(recorder.settings)
        self.limited = bool(
            self.settings.get("host_budget_bytes")
        )  # running out of memory is an error, then, and no kill
        self._forecasts: dict[bool, Forecast] = {}
        self._undo_logs: dict[str, UndoLog] = {}  # of what is being made just now
        self.all: Any = weakref.WeakSet()  # what `shrink` reaches
        if self.wanted:
            recorder.on_command("shrink", self._shrink)

    def on_gpu(self, model: Any) -> bool:
        if self.tf is None or model is None:
            return False
        variables = model.trainable_variables or model.variables
        value = seams.value_of(variables[0]) if variables else None
        device = getattr(value, "device", None)
        return "GPU" in str(device) if device else on_gpu()

    def catches(self, model: Any) -> bool:
        """Only where a budget was given, memory ran out before, or on a GPU: the compiled step of other runs stays Keras's."""
        budget = any(self.settings.get(name) for name in ("host_budget_bytes", "gpu_budget_bytes"))
        return self.k > 1 or budget or self.on_gpu(model)

    def forecast(self, model: Any) -> Forecast:
        on_gpu = self.on_gpu(model)
        if on_gpu not in self._forecasts:
            kind = CardForecast if on_gpu else ResidentForecast if pages_are_given_back() else Forecast
            budget, ranks = self.settings.get("host_budget_bytes"), int(self.settings.get("ranks") or 1)
            self._forecasts[on_gpu] = kind(self.tf, self.recorder.settings.get("groups"), ranks, budget)
        return self._forecasts[on_gpu]

    def graphs(self, model: Any) -> Graphs:
        """All of them where running out of memory is an error; none from the third attempt on without a
        checkpoint: with the full graph and with a smaller one the process was killed."""
        if self.on_gpu(model):
            return Graphs.SLICES
        if self.catches(model) and self.k <= 1:
            return Graphs.ALL
        attempt = int(self.recorder.settings.get("attempt") or 1)
        return Graphs.NONE if self.anew and attempt > GRAPH_UP_TO_ATTEMPT else Graphs.SLICES

    def _shrink(self, _command: dict[str, Any]) -> str:
        """Twice as many pieces, before memory runs out."""
        training = [rescued for rescued in self.all if rescued.where == "train"]
        for rescued in training:
            rescued.pieces.shrink()
        return "done" if training else "no training step is taken over"

    @contextlib.contextmanager
    def while_making(self, model: Any, where: str) -> Iterator[None]:
        """Keras compiles what `model.train_step` is at that moment."""
        self._undo_logs.pop(where, None)
        step = self._with_undo(model, where) if self.on and self.catches(model) and not compiled_by_xla(model) else None
        if step is None:
            yield
            return
        with replaced_here(model, STEPS[where], step):
            yield

    @guarded
    def _with_undo(self, model: Any, where: str) -> Optional[Step]:
        if not _is_alone(model):
            return None
        undo_log = self._undo_logs[where] = UndoLog(self.tf)
        variable_class = seams.variable_class("tensorflow")
        return undo_log.keeping(getattr(model, STEPS[where]), model, variable_class)

    def of_step(self, model_ref: Callable[[], Any], compiled: Any, where: str) -> Optional[KerasDriver]:
        """For the step that was made last."""
        undo_log = self._undo_logs.pop(where, None)
        model = model_ref()
        if not self.on or not _is_alone(model):
            return None
        if self.catches(model) and undo_log is None and not compiled_by_xla(model):
            return None

        def sliced() -> SlicedStep:
            model = model_ref()
            step = getattr(model, STEPS[where])
            xla = self.on_gpu(model) and compiled_by_xla(model)
            return SlicedStep(model, step, self.tf, where == "train", self.graphs(model), xla_updates=xla)

        return KerasDriver(self, where, sliced, compiled, undo_log, model_ref)


class KerasDriver(Driver):
    """One kind of step of one model: whole as long as it fits, in pieces from then on."""

    def __init__(
        self,
        rescue: Rescue,
        where: str,
        sliced: Callable[[], Any],
        compiled: Any,
        undo_log: Optional[UndoLog] = None,
        model_ref: Callable[[], Any] = lambda: None,
    ) -> None:
        self._model_ref, self._rescue = model_ref, rescue
        self.where = where
        rescue.all.add(self)
        self._make_sliced = sliced
        self._sliced: Any = None
        model = model_ref()
        self._on_gpu = rescue.on_gpu(model)
        self._compiled = compiled
        self._foresight = Foresight(rescue.forecast(model), rescue.tf, compiled, where, self._pending_bytes)
        self._undo_log = undo_log
        xla = where != "predict" and self._on_gpu and compiled_by_xla(model)
        self._xla = XlaStep(model_ref, self._foresight, where) if xla else None
        # What changes nothing need not be undone.
        self._catches = undo_log is not None or where == "predict" or xla
        self._whole: Step = lambda batch: batch
        handed = rescue.k if where == "train" else 1
        self.pieces = Pieces(handed, tries=rescue.limited and not self._on_gpu)
        self._engine = Engine(self, self.pieces, rescue.recorder)
        self._looked_at: list[tuple[int, ...]] = []  # the largest shapes that were
        self._seen: set[Any] = set()

    def around(self, step: Step) -> Step:
        self._whole = step
        seen, pieces, run = self._seen, self.pieces, self._engine.run
        known = self._engine.run_whole if self._catches else step

        def rescued(batch: Any) -> Any:
            return known(batch) if pieces.whole and shape_of(batch) in seen else run(batch)

        return rescued

    @property
    def at_risk(self) -> bool:
        """Whether a batch so far might not have fitted."""
        return not self.pieces.whole

    # -- the driver

    def size(self, batch: Any) -> tuple[int, Any]:
        return rows_of(batch, self._rescue.tf), tail_of(batch, self._rescue.tf)

    def whole(self, batch: Any) -> Any:
        if self._undo_log is not None:
            self._undo_log.attempts += 1
        if self._xla is None:
            return self._whole(batch)
        with self._xla.held():
            return self._whole(batch)

    def whole_failed(self, error: BaseException) -> None:
        if self._xla is not None:
            if not self._xla.was_held:
                self._xla.tell_needs(error, self._rescue.recorder)
                raise MustStartAgain("a step compiled by XLA has lost its variables")
            return
        if self._undo_log is None and not self._catches:
            raise CannotSplit("its step is Keras's own, which cannot be undone")
        reason = guarded(self._undo_log.put_back)() if self._undo_log is not None else ""
        if reason != "":
            raise CannotSplit(reason or "what the failed step had changed could not be put back")

    def foresee(self, batch: Any, rows: int, tail: Any) -> Optional[int]:
        shape = shape_of(batch)
        if shape in self._seen:
            return None
        self._seen.add(shape)
        fit: Optional[int] = guarded_but_for_refusals(self._look)(batch, shape, rows, tail)
        return fit

    def measure(self, batch: Any, rows: int, tail: Any) -> Optional[int]:
        fit: Optional[int] = guarded_but_for_refusals(self._measured_fit)(batch, rows, tail)
        return fit

    def begin(self, batch: Any, rows: int, k: int) -> None:
        if not self._on_gpu and self._sliced is None and self.where != "predict":
            let_go(self._compiled)
        self._piecewise().begin(batch, rows, k)

    def piece(self, batch: Any, begin: int, end: int) -> None:
        self._sliced.piece(batch, begin, end)

    def piece_failed(self, position: int, error: Optional[BaseException]) -> int:
        if self._sliced is not None:
            self._sliced.put_back()
        return 0

    def end(self, batch: Any) -> Any:
        return self._sliced.end(batch)

    def is_of_the_step(self, error: BaseException) -> bool:
        """What an operation of the step complains of, and what happens once the update has begun."""
        return isinstance(error, self._rescue.tf.errors.OpError) or self._sliced.stage == "update"

    def grows_to(self, rows: int, tail: Any) -> Optional[int]:
        return self._foresight.again(rows, tail)

    def disclosures(self) -> list[str]:
        return self._sliced.disclosures() if self._sliced is not None else []

    def would_help(self) -> list[str]:
        model, limit = self._model_ref(), self._foresight.forecast.limit()
        return would_help(model, limit) if model is not None else []

    def device_of(self, error: BaseException) -> Optional[str]:
        return "gpu" if self._on_gpu and "CPU:0" not in str(error) else None

    # -- before

    def _piecewise(self) -> Any:
        if self._sliced is None:
            self._sliced = self._make_sliced()
        return self._sliced

    def _look(self, batch: Any, shape: tuple[int, ...], rows: int, tail: Any) -> Optional[int]:
        if any(_within(shape, known) for known in self._looked_at) and (self.pieces.whole or self.pieces.knows(tail)):
            return None  # fewer rows than before; shorter ones have a size of their own once batches are cut
        self._looked_at = [known for known in self._looked_at if not _within(known, shape)] + [shape]
        found = self._foresight.look(batch, self._piecewise, self._rescue.k, not self.pieces.whole)
        if found is not None and self._xla is not None and self.pieces.whole and self._xla.may_fit(found.needed):
            found = None
        if found is None:
            if self.pieces.whole:
                if self._sliced is not None:
                    self._sliced = None  # with the sums of its gradients
                    give_back()
                if self._xla is not None:
                    self._xla.hold_next(batch, rows, tail)
            return None
        handed = self._rescue.k if self.where == "train" else 1
        fit = min(found.rows, -(-rows // handed))
        self.pieces.foreseen(tail, fit)
        self._tell_foreseen(rows, self.pieces.count(rows, tail), found)
        return fit

    def _measured_fit(self, batch: Any, rows: int, tail: Any) -> Optional[int]:
        """After a whole batch did not fit."""
        room = self._foresight.forecast.room()
        if room is None:
            return None
        found = self._foresight.measured(batch, rows, tail, self._piecewise(), room, 0, rows // 2)
        return None if found is None else min(found.rows, -(-rows // 2))

    def _tell_foreseen(self, rows: int, k: int, found: Any) -> None:
        recorder, room = self._rescue.recorder, found.room
        recorder.event(
            "rescue.foreseen", where=self.where, rows=rows, k=k, of=room.of, step=recorder.steps + 1,
            limit_bytes=room.bytes, left_bytes=room.left, needed_bytes=found.needed,
            device="gpu" if self._on_gpu else "host",
        )  # fmt: skip
        recorder.cut(k, self.where)

    def _pending_bytes(self) -> int:
        """Before the first update all slots of one shape are the same zeros: TensorFlow has them once."""
        model = self._model_ref()
        optimizer = getattr(model, "optimizer", None)
        if self.where != "train" or optimizer is None or int(optimizer.iterations.numpy()):
            return 0
        once = {(str(slot.dtype), tuple(slot.shape)): slot for slot in optimizer.variables}
        return bytes_of(optimizer.variables) - bytes_of(once.values())


def guarded_but_for_refusals(look: Callable[..., Any]) -> Callable[..., Any]:
    """A refusal is an answer; anything else that goes wrong in a look is ours, and the batch goes through as it is."""
    refusals: list[CannotSplit] = []

    def looked(*args: Any) -> Any:
        try:
            return look(*args)
        except CannotSplit as reason:
            refusals.append(reason)
            return None

    def answer(*args: Any) -> Any:
        found = guarded(looked)(*args)
        if refusals:
            raise refusals.pop()
        return found

    return answer


def _within(shape: tuple[int, ...], known: tuple[int, ...]) -> bool:
    """In every dimension: fewer rows that are longer may well need more."""
    return len(shape) == len(known) and all(a <= LOOK_AGAIN_RATIO * b for a, b in zip(shape, known))


def has_checkpoint(settings: dict[str, Any]) -> bool:
    directory = (settings.get("checkpoint") or {}).get("directory")
    try:
        return any(name.isdigit() for name in os.listdir(directory or ""))
    except OSError:
        return False


def _is_alone(model: Any) -> bool:
    return model is not None and seams.on_one_device(model)
