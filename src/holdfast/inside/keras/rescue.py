"""Out of memory in a step of Keras on TensorFlow: foreseen, or undone, and the same batch in micro-batches.

Without a budget there is no error to catch, only the kernel's kill. Then Keras's compiled step stays as it is, and all
that happens is a look at each new shape of batch: whether it can fit at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import weakref
from typing import Any, Callable, Iterator, Optional

from ..guard import guarded
from ..memory import forget, give_back, is_out_of_memory, tell_caught, wanted
from ..pieces import AGAIN_AFTER, Pieces
from ..telemetry import Recorder
from ..tensorflow.forecast import Forecast
from .fit import shape_of
from .foresight import Foresight
from .graphs import Graphs
from .micro import Micro
from .redirected import CannotSplit
from .slices import CannotSlice, rows_of, tail_of
from .undo import Keeper, replaced_here
from .would_help import would_help

Step = Callable[[Any], Any]
LOOK_AGAIN_RATIO = 1.05  # a look takes some milliseconds: not for every length a sequence may have
GRAPH_UP_TO_ATTEMPT = 2
STEPS = {"train": "train_step", "evaluate": "test_step"}
COLOURS = re.compile("\x1b\\[[0-9;]*m")  # Keras's own


class Rescue:
    """For every model of this process."""

    def __init__(self, recorder: Recorder, tf: Any) -> None:
        self.recorder = recorder
        self.tf = tf
        settings = recorder.settings.get("rescue")
        self.wanted = recorder.settings.get("policy") == "protect" and isinstance(settings, dict)
        settings = settings if self.wanted and isinstance(settings, dict) else {}
        self.on = self.wanted and tf is not None
        self.k = int(settings.get("k") or 1)
        # Only where a budget was given or memory ran out before: the compiled step of other runs stays Keras's own.
        self.catches = self.k > 1 or any(settings.get(name) for name in ("host_budget_bytes", "gpu_budget_bytes"))
        self.anew = not has_checkpoint(recorder.settings)
        self.graphs = self._graphs()
        self.limited = bool(settings.get("host_budget_bytes"))  # running out of memory is an error, then, and no kill
        self.forecast = Forecast(tf, settings.get("groups"), int(settings.get("ranks") or 1))
        self._said: set[str] = set()
        self._keepers: dict[str, Keeper] = {}  # of what is being made just now
        self.all: Any = weakref.WeakSet()  # what `shrink` reaches
        if self.wanted:
            recorder.on_command("shrink", self._shrink)

    def _graphs(self) -> Graphs:
        """All of them where running out of memory is an error; none where the process was killed twice, with a first graph
        and with a smaller one, before there was a checkpoint."""
        if self.catches and self.k <= 1:
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
        self._keepers.pop(where, None)
        step = self._kept(model, where) if self.on and self.catches else None
        if step is None:
            yield
            return
        with replaced_here(model, STEPS[where], step):
            yield

    @guarded
    def _kept(self, model: Any, where: str) -> Optional[Step]:
        if not _is_alone(model):
            return None
        keeper = self._keepers[where] = Keeper(self.tf)
        variable_class = sys.modules["keras.src.backend.tensorflow.core"].Variable
        return keeper.keeping(getattr(model, STEPS[where]), model, variable_class)

    def of_step(self, model_ref: Callable[[], Any], compiled: Any, where: str) -> Optional[Rescued]:
        """For the step that was made last."""
        keeper = self._keepers.pop(where, None)
        if not self.on or (self.catches and keeper is None) or not _is_alone(model_ref()):
            return None

        def sliced() -> Micro:
            model = model_ref()
            step = getattr(model, STEPS[where])
            return Micro(model, step, self.tf, trains=where == "train", graphs=self.graphs)

        return Rescued(self, where, sliced, compiled, keeper, model_ref)

    def tell_once(self, kind: str, **data: object) -> None:
        said = f"{kind} {data}"
        if said not in self._said:
            self._said.add(said)
            self.recorder.event(kind, **data)


class Rescued:
    """One kind of step of one model: whole as long as it fits, in pieces from then on."""

    def __init__(
        self,
        rescue: Rescue,
        where: str,
        sliced: Callable[[], Any],
        compiled: Any,
        keeper: Optional[Keeper] = None,
        model_ref: Callable[[], Any] = lambda: None,
    ) -> None:
        self._model_ref = model_ref
        self._rescue = rescue
        self.where = self._where = where
        rescue.all.add(self)
        self._make_sliced = sliced
        self._sliced: Any = None
        self._foresight = Foresight(rescue.forecast, rescue.tf, compiled, where)
        self._keeper = keeper
        self._catches = keeper is not None or where == "predict"  # what changes nothing need not be undone
        self._refused = ""
        self._whole: Step = lambda batch: batch
        self.pieces = Pieces(rescue.k if where == "train" else 1, tries=rescue.limited)
        self._foreseen: set[Any] = set()
        self._looked_at: list[tuple[int, ...]] = []  # the largest shapes that were
        self._steps = 0  # in pieces
        self._cut_rows = 0  # of the largest batch that was cut
        self._disclosed = self._told_k = False

    def around(self, step: Step) -> Step:
        keeper, pieces, foreseen, catches = self._keeper, self.pieces, self._foreseen, self._catches
        self._whole = step

        def rescued(batch: Any) -> Any:
            shape = shape_of(batch)
            if shape not in foreseen:
                foreseen.add(shape)
                self._foresee(batch, shape)
            if not pieces.whole:
                return self._in_pieces(batch)
            if not catches:
                return step(batch)
            if keeper is not None:
                keeper.attempts += 1
            try:
                return step(batch)
            except Exception as error:
                if not is_out_of_memory(error) or not self._undone(error) or not self._smaller(batch, error):
                    raise
                forget(error)
            give_back()
            return self._in_pieces(batch)

        return rescued

    @property
    def at_risk(self) -> bool:
        """Whether a batch so far might not have fitted."""
        return not self.pieces.whole

    def _in_pieces(self, batch: Any) -> Any:
        """Until it fits. Each failure means smaller pieces; at one row there is nothing smaller."""
        tf = self._rescue.tf
        while True:
            try:
                rows, tail = rows_of(batch, tf), tail_of(batch, tf)
            except CannotSlice:
                return self._as_one(batch)
            k = self.pieces.count(rows, tail)
            if self._refused or (k == 1 and rows >= self._cut_rows):
                return self._as_one(batch)
            self._cut_rows = max(rows, self._cut_rows)
            try:
                result = self._piecewise().run(batch, k)
            except Exception as error:
                if is_out_of_memory(error):
                    if not self._put_back(error) or not self._smaller(batch, error):
                        raise
                elif self._is_the_users(error):
                    raise
                else:  # whole, it says for itself what is wrong
                    guarded(self._sliced.put_back)()
                    self._refuse(_in_words(error))
                forget(error)
            else:
                self._disclose()
                now = self.pieces.fitted(rows, tail, k)
                if now == k:
                    now = self._look_again(rows, tail, k)
                if now != k or not self._told_k:
                    self._tell_k(now)
                return result
            give_back()

    def _is_the_users(self, error: BaseException) -> bool:
        """What an operation of the step complains of, and what happens once the update has begun."""
        ours = isinstance(error, (CannotSplit, CannotSlice))
        return not ours and (isinstance(error, self._rescue.tf.errors.OpError) or self._sliced.stage == "update")

    def _as_one(self, batch: Any) -> Any:
        """If it should not fit as it is, it is the next to be cut."""
        if not self._catches:
            return self._whole(batch)
        if self._keeper is not None:
            self._keeper.attempts += 1
        try:
            return self._whole(batch)
        except Exception as error:
            if not is_out_of_memory(error) or not self._undone(error) or not self._smaller(batch, error):
                raise
            forget(error)
        give_back()
        return self._in_pieces(batch)

    def _piecewise(self) -> Any:
        if self._sliced is None:
            self._sliced = self._make_sliced()
        return self._sliced

    @guarded
    def _disclose(self) -> None:
        """Once; its size was measured on the first batch."""
        if not self._disclosed:
            self._disclosed = True
            for text in self._sliced.disclosures():
                self._rescue.tell_once("rescue.disclosed", text=text)

    # -- before

    @guarded
    def _foresee(self, batch: Any, shape: tuple[int, ...]) -> None:
        if any(_within(shape, known) for known in self._looked_at) and self._is_known(batch):
            return
        self._looked_at = [known for known in self._looked_at if not _within(known, shape)] + [shape]
        try:
            found = self._foresight.look(batch, self._to_measure, self._rescue.k, not self.pieces.whole)
        except (CannotSplit, CannotSlice) as reason:
            self._refuse(str(reason))
            return
        if found is None:
            if self.pieces.whole:
                self._sliced = None  # with the sums of its gradients
            return
        tf, recorder, room = self._rescue.tf, self._rescue.recorder, found.room
        rows, tail = rows_of(batch, tf), tail_of(batch, tf)
        handed = self._rescue.k if self._where == "train" else 1
        self.pieces.foreseen(tail, min(found.rows, -(-rows // handed)))
        k = self.pieces.count(rows, tail)
        recorder.event(
            "rescue.foreseen", where=self._where, rows=rows, k=k, of=room.of, step=recorder.steps + 1,
            limit_bytes=room.bytes, left_bytes=room.left, needed_bytes=found.needed,
        )  # fmt: skip
        self._tell_k(k)

    def _is_known(self, batch: Any) -> bool:
        """Fewer rows than before. Shorter ones have a size of their own once batches are cut."""
        return self.pieces.whole or self.pieces.knows(tail_of(batch, self._rescue.tf))

    def _to_measure(self) -> Any:
        self._sliced = self._sliced or self._make_sliced()
        return self._sliced

    @guarded
    def _look_again(self, rows: int, tail: Any, k: int) -> int:
        """Now and then, whether there is room for larger pieces; by what was measured, since a trial may be the end."""
        self._steps += 1
        if self._steps % AGAIN_AFTER:
            return k
        fit = self._foresight.again(rows, tail)
        if fit is not None and fit >= 2 * -(-rows // k):
            self.pieces.foreseen(tail, fit)
        return self.pieces.count(rows, tail)

    # -- after a failure

    def _undone(self, error: BaseException) -> bool:
        if self._keeper is None:
            return self._catches
        reason = guarded(self._keeper.put_back)()
        if reason != "":
            self._refuse(reason or "what the failed step had changed could not be put back", error)
        return bool(reason == "")

    def _put_back(self, error: BaseException) -> bool:
        reason = guarded(self._sliced.put_back)()
        if reason != "":
            self._sliced = None
            self._refuse(reason or "what the failed step had changed could not be put back", error)
        return bool(reason == "")

    def _smaller(self, batch: Any, error: BaseException) -> bool:
        """Whether there is a smaller size to try; both are told."""
        tf, recorder = self._rescue.tf, self._rescue.recorder
        try:
            rows, tail = rows_of(batch, tf), tail_of(batch, tf)
        except CannotSlice as reason:
            self._refuse(str(reason), error)
            return False
        k = self.pieces.count(rows, tail)
        tell_caught(recorder, self._where, k, error)
        if self._refused:
            return False
        grown = self.pieces.did_not_fit(rows, tail, k)
        if grown is None:
            self._refuse("one row at a time does not fit", error)
            helps = guarded(self._would_help)()
            recorder.event("rescue.exhausted", where=self._where, help=helps or [])
            return False
        self._tell_k(grown)
        return True

    def _tell_k(self, k: int) -> None:
        """The one handed on, too, once it has proved itself: the next run begins with it."""
        self._told_k = True
        self._rescue.recorder.event("rescue.k", k=k, where=self._where)

    def _would_help(self) -> list[str]:
        model, limit = self._model_ref(), self._rescue.forecast.limit()
        return would_help(model, limit) if model is not None else []

    def _refuse(self, reason: str, error: Optional[BaseException] = None) -> None:
        known, self._refused = self._refused, reason
        if reason != known:
            words = wanted(error) if error is not None else ""
            self._rescue.recorder.event("rescue.refused", reason=reason, where=self._where, wanted=words)


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
    return model is not None and type(model.distribute_strategy).__name__ == "_DefaultDistributionStrategy"


def _in_words(error: BaseException) -> str:
    if isinstance(error, (CannotSplit, CannotSlice)):
        return str(error)
    lines = [line.strip() for line in COLOURS.sub("", str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:300]
