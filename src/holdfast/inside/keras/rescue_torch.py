"""Out of memory in a step of Keras on the torch backend: undone, and the same batch again in micro-batches."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator, Optional

from ..guard import guarded
from ..memory import forget, give_back, is_out_of_memory, tell_caught, wanted
from ..pieces import Pieces, bounds
from ..rescue_engine import CannotSplit
from ..telemetry import Recorder
from ..torch.slicing import CannotSlice, rows_of, tail_of
from .effects import Effects
from .micro_torch import Slices
from .undo import optimizers_of, replaced, replaced_here
from .whole_and_parts import alike, few_of, refusal, tolerance, without_chance


class TorchRescue:
    """Of one model."""

    def __init__(self, model: Any, recorder: Recorder, k: int) -> None:
        self._torch: Any = sys.modules["torch"]
        self._model = model
        self._recorder = recorder
        self._updating = False
        self._kept: dict[int, tuple[Any, Any]] = {}
        self._effects = Effects(model)
        self._verified = self._disclosed = self._sums_rows = False
        self._refused = ""
        normalises = any("BatchNorm" in type(layer).__name__ for layer in model._flatten_layers())
        # A run that was killed on the CPU begins in pieces, and would be killed again by larger ones.
        tries = k == 1 or bool(self._torch.cuda.is_available())
        self._pieces = Pieces(k, least=2 if normalises else 1, tries=tries)

    def around(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Keras calls it with a list of one batch."""

        def train_function(data: Any) -> Any:
            failure: Optional[BaseException] = None
            while True:
                rows, tail, k = self._size(data[0])
                self._updating = False
                try:
                    if k == 1:
                        with self._keeping():
                            return function(data)
                    self._verify(data[0], rows, k)
                    with self._keeping():
                        logs = self._slices().run(data[0], rows, k, self._effects)
                except CannotSplit as reason:
                    self._put_back()
                    self._refuse(str(reason), failure)
                    if failure is not None:
                        raise failure from None
                    continue
                except (MemoryError, RuntimeError) as error:  # PyTorch's own is one of these
                    if not is_out_of_memory(error) or not self._go_on(rows, tail, k, error):
                        raise
                    forget(error)
                    failure = error
                else:
                    self._pieces.fitted(rows, tail, k)
                    self._disclose()
                    return logs
                give_back()

        return train_function

    def _size(self, batch: Any) -> tuple[int, Any, int]:
        try:
            rows, tail = rows_of(batch, self._torch), tail_of(batch, self._torch)
        except CannotSlice:
            return 1, None, 1
        return rows, tail, 1 if self._refused else self._pieces.count(rows, tail)

    def _slices(self) -> Slices:
        return Slices(self._model, self._torch, self._sums_rows, self._update_begins)

    def _verify(self, batch: Any, rows: int, k: int) -> None:
        """On a few rows, once a model: the whole is the sum of its parts."""
        few = few_of(rows, rows // k)
        if self._verified or few < 2:
            return
        with self._keeping(), without_chance(self._model):
            try:
                self._compare(batch, few)
            finally:
                self._put_back()
        self._verified = True

    def _compare(self, batch: Any, few: int) -> None:
        most = tolerance(self._model)
        whole, halves = self._gradient(batch, [(0, few)]), self._gradient(batch, bounds(few, 2))
        if alike(whole, halves, most):
            return
        if alike(whole, 2 * halves, most):
            self._sums_rows = True
            halves = self._gradient(batch, bounds(few, 2))
        if not alike(whole, halves, most) and alike(whole, self._gradient(batch, [(0, few)]), most):
            raise CannotSplit(refusal(self._model))

    def _gradient(self, batch: Any, pieces: list[tuple[int, int]]) -> Any:
        gradient = self._slices().gradient(batch, pieces)
        self._put_back()
        return gradient

    @guarded
    def _disclose(self) -> None:
        if not self._disclosed:
            self._disclosed = True
            for text in self._effects.texts():
                self._recorder.event("rescue.disclosed", text=text)

    def _go_on(self, rows: int, tail: Any, k: int, error: BaseException) -> bool:
        self._put_back()
        tell_caught(self._recorder, "train", k, error)
        if self._refused:
            return False
        reason = ""
        if self._updating:
            reason = "memory ran out within the update of the weights"
        elif tail is None:
            reason = "its inputs do not share a first axis"
        grown = None if reason else self._pieces.did_not_fit(rows, tail, k)
        if grown is None:
            self._refuse(reason or "one row at a time does not fit", error)
            return False
        self._recorder.event("rescue.k", k=grown, where="train")
        return True

    def _refuse(self, reason: str, error: Optional[BaseException]) -> None:
        known, self._refused = self._refused, reason
        if reason != known:
            words = wanted(error) if error is not None else ""
            self._recorder.event("rescue.refused", reason=reason, where="train", wanted=words)

    # -- no trace of a failed attempt

    @contextlib.contextmanager
    def _keeping(self) -> Iterator[None]:
        variable_class: Any = sys.modules["keras.src.backend.torch.core"].Variable
        assign = variable_class._direct_assign
        self._kept.clear()

        def copy_and_assign(variable: Any, value: Any) -> None:
            if not self._updating and id(variable) not in self._kept:
                self._kept[id(variable)] = (variable, variable.value.detach().clone())
            assign(variable, value)

        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(variable_class, "_direct_assign", copy_and_assign))
            for optimizer in optimizers_of(self._model):
                stack.enter_context(replaced_here(optimizer, "apply", self._marking(optimizer.apply)))
            yield

    def _marking(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        def marked(*args: Any, **kwargs: Any) -> Any:
            self._update_begins()
            return apply(*args, **kwargs)

        return marked

    def _update_begins(self) -> None:
        self._updating = True

    def _put_back(self) -> None:
        if self._updating:
            return
        with self._torch.no_grad():
            for variable, copy in self._kept.values():
                variable.value.copy_(copy)
        self._model.zero_grad()


@guarded
def rescued(model: Any, function: Any, recorder: Recorder, k: int) -> Optional[Callable[[Any], Any]]:
    return TorchRescue(model, recorder, k).around(function)
