"""Out of memory in a step of Keras on the torch backend: undone, and the same batch again in micro-batches."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator, Optional

from ..never_raise import guarded
from ..piece_sizes import Pieces, bounds
from ..rescue_engine import CannotSplit, Driver, Engine
from ..telemetry import Recorder
from ..torch.gradient_samples import sampled
from ..torch.tensor_nests import cut, rows_of, tail_of
from ..user_errors import passing
from . import seams
from .gradient_check import alike, few_of, refusal, tolerance, with_a_gradient, without_chance
from .split_effects import Effects
from .torch_calls import Calls
from .undo import optimizers_of, replaced, replaced_here


@guarded
def rescued(model: Any, function: Any, recorder: Recorder, k: int) -> Optional[Callable[[Any], Any]]:
    """Keras's `function` of a list of one batch, made to survive."""
    normalises = any("BatchNorm" in type(layer).__name__ for layer in seams.layers_of(model))
    # A run that was killed on the CPU begins in pieces, and would be killed again by larger ones.
    tries = k == 1 or bool(sys.modules["torch"].cuda.is_available())
    pieces = Pieces(k, least=2 if normalises else 1, tries=tries)
    return Engine(TorchDriver(model, function, pieces), pieces, recorder).run


class TorchDriver(Driver):
    """Of one model."""

    def __init__(self, model: Any, function: Callable[[Any], Any], pieces: Pieces) -> None:
        self._torch: Any = sys.modules["torch"]
        self._model, self._function, self._pieces = model, function, pieces
        self._effects = Effects(model)
        self._sums_rows = False
        self._unmasked: set[Any] = set()  # shapes of batches in whose loss no mask is counted
        self._updating = False
        self._kept: dict[int, tuple[Any, Any]] = {}  # what was assigned, and the value before
        self._rows = 0
        self._calls = self._new_calls()
        self._logs: list[tuple[float, Any]] = []
        self._changes: dict[int, Any] = {}  # of statistics, by all pieces together

    def size(self, batch: Any) -> tuple[int, Any]:
        return rows_of(batch[0], self._torch), tail_of(batch[0], self._torch)

    def whole(self, batch: Any) -> Any:
        self._forget()
        with passing, self._keeping():
            return self._function(batch)

    def whole_failed(self, error: BaseException) -> None:
        self._put_back()

    def begin(self, batch: Any, rows: int, k: int) -> None:
        self._forget()
        self._verify(batch[0], rows, k)
        self._rows, self._calls = rows, self._new_calls()
        pieces, tail = bounds(rows, k), tail_of(batch[0], self._torch)
        if tail not in self._unmasked:
            with self._keeping():
                self._calls.count(batch[0], pieces)
            if not self._calls.needs_counts:
                self._unmasked.add(tail)
        self._effects.begins(pieces[0][1])

    def piece(self, batch: Any, begin: int, end: int) -> None:
        share = (end - begin) / self._rows
        with self._keeping():
            logs = self._calls.train_step(cut(batch[0], begin, end, self._torch), share)
        self._logs.append((share, logs))
        self._effects.sliced()
        with self._torch.no_grad():
            for variable, before in self._statistics():
                change = variable.value - before
                known = self._changes.get(id(variable), 0)
                self._changes[id(variable)] = known + change * share if change.is_floating_point() else change
                variable.value.copy_(before)

    def piece_failed(self, position: int, error: Optional[BaseException]) -> int:
        self._put_back()
        return 0

    def end(self, batch: Any) -> Any:
        self._effects.ends()
        with self._keeping():
            self._calls.update(self._rows)
        with self._torch.no_grad():
            for variable, _ in self._statistics():
                variable.value.add_(self._changes.get(id(variable), 0))
        logs = self._together(self._logs)
        self._forget()
        return logs

    def is_of_the_step(self, error: BaseException) -> bool:
        return self._updating

    def disclosures(self) -> list[str]:
        return self._effects.texts()

    def _new_calls(self) -> Calls:
        return Calls(self._model, self._torch, self._sums_rows)

    def _statistics(self) -> list[tuple[Any, Any]]:
        """Weights that are not trained and were assigned all the same; with their values before the batch."""
        ours = {id(variable) for variable in self._model.non_trainable_weights}
        return [kept for name, kept in self._kept.items() if name in ours]

    def _together(self, logs: list[tuple[float, Any]]) -> Any:
        last = logs[-1][1]
        if not isinstance(last, dict):
            return last
        results = self._model.get_metrics_result()
        return {key: results[key] if key in results else sum(share * log[key] for share, log in logs) for key in last}

    # -- whether it may be cut

    def _verify(self, batch: Any, rows: int, k: int) -> None:
        """On a few rows, once a model: the whole is the sum of its parts."""
        few = min(few_of(rows, rows // k), max(2, rows // k // 2 * 2))
        if self._pieces.verified or few < 2:
            return
        with self._keeping(), without_chance(self._model):
            try:
                most = max(few, rows // k // 2 * 2)
                self._compare(batch, with_a_gradient(lambda count: self._gradient(batch, [(0, count)]), few, most))
            finally:
                self._put_back()
        self._pieces.verified = True

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
        calls = self._new_calls()
        calls.count(batch, pieces)
        for begin, end in pieces:
            calls.train_step(cut(batch, begin, end, self._torch), (end - begin) / pieces[-1][1])
        gradient = sampled(self._torch, [(v.value, total) for v, total in zip(calls.variables, calls.sums)])
        self._put_back()
        return gradient

    # -- no trace of a failed attempt

    @contextlib.contextmanager
    def _keeping(self) -> Iterator[None]:
        variable_class = seams.variable_class("torch")
        assign = getattr(variable_class, seams.DIRECT_ASSIGN)

        def copy_and_assign(variable: Any, value: Any) -> None:
            if not self._updating and id(variable) not in self._kept:
                self._kept[id(variable)] = (variable, variable.value.detach().clone())
            assign(variable, value)

        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(variable_class, seams.DIRECT_ASSIGN, copy_and_assign))
            for optimizer in optimizers_of(self._model):
                stack.enter_context(replaced_here(optimizer, "apply", self._marking(optimizer.apply)))
            yield

    def _marking(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        def marked(*args: Any, **kwargs: Any) -> Any:
            self._updating = True
            return apply(*args, **kwargs)

        return marked

    def _forget(self) -> None:
        """What the batch before left."""
        self._updating = False
        self._kept.clear()
        self._logs, self._changes = [], {}
        self._calls = self._new_calls()

    def _put_back(self) -> None:
        if self._updating:
            raise CannotSplit("memory ran out within the update of the weights")
        with self._torch.no_grad():
            for variable, copy in self._kept.values():
                variable.value.copy_(copy)
        self._model.zero_grad()
