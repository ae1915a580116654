"""`holdfast plan` in PyTorch: the script's loader hands out its first batch again, in other sizes; the loop is the script's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List

from ..never_raise import guarded, on_failure
from ..plan.gauges import Gauges
from ..plan.notes import Notes
from ..plan.rounds import Rounds
from ..rescue_engine import CannotSplit
from . import step
from .plan_anatomy import TorchAnatomy, card_gauge
from .step import Call, Step
from .tensor_nests import is_by_row, opened, refilled, rows_of, tensors_of

_rounds: List[Rounds] = []


def install(torch: Any, notes: Notes, wanted: Dict[str, Any]) -> None:
    on_failure(notes.failed)
    anatomy = TorchAnatomy(torch)
    anatomy.follow_modules()
    rounds = Rounds(notes, wanted, Gauges(card_gauge(torch)), anatomy)
    _rounds.append(rounds)
    step.take_over(torch, [PlannedLoop(torch, rounds, anatomy).aspect], lambda: None)
    notes.tell("installed", framework="torch", version=str(torch.__version__))


def of_process() -> Rounds:
    return _rounds[0]


class PlannedLoop:
    def __init__(self, torch: Any, rounds: Rounds, anatomy: TorchAnatomy) -> None:
        self._torch, self._rounds, self._anatomy = torch, rounds, anatomy

    def aspect(self, inner: Step) -> Step:
        return replace(
            inner,
            iterate=self._iterate(inner.iterate),
            next_batch=self._next_batch(inner.next_batch),
            backward=self._backward(inner.backward),
            save=self._save(inner.save),
            before_update=(*inner.before_update, self._before_update),
            after_update=(*inner.after_update, self._after_update),
        )

    # -- data

    def _iterate(self, inner: Call) -> Call:
        def __iter__(loader: Any) -> Any:
            iterator = inner(loader)
            guarded(setattr)(iterator, "_holdfast_source", id(loader))
            return iterator

        return __iter__

    def _next_batch(self, inner: Call) -> Call:
        """What is trained on is pulled once. Whatever else is pulled comes from the loader, so that it ends as it would."""
        rounds, turn, changed = self._rounds, guarded(self._rounds.turn), guarded(self._changed)

        def __next__(iterator: Any) -> Any:
            if not self._torch.is_grad_enabled():
                return inner(iterator)
            source = getattr(iterator, "_holdfast_source", id(iterator))
            turn()
            first = rounds.firsts.get(source)
            if first is None or source not in rounds.trained:
                first = inner(iterator)
            batch = changed(source, first)
            return first if batch is None else batch

        return __next__

    def _changed(self, source: Any, first: Any) -> Any:
        rounds = self._rounds
        rounds.pulled(source)
        rows = _counted_rows(first, self._torch)
        rounds.firsts[source] = first
        if rounds.sizes is None:
            rounds.resizes = rounds.resizes and rows > 0
            rounds.begins(rows)
        wanted = rounds.scaled(rows) if rounds.resizes and rows else rows
        batch = resized(first, rows, wanted, self._torch) if rows else first
        self._anatomy.batch_bytes = sum(t.nbytes for t in tensors_of(batch, self._torch))
        self._anatomy.batch = batch
        rounds.gauges.kept = sum(t.nbytes for one in rounds.firsts.values() for t in tensors_of(one, self._torch))
        return batch

    # -- the step

    def _backward(self, inner: Call) -> Call:
        begins = guarded(self._anatomy.backward_begins)

        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            begins()
            return inner(tensor, *args, **kwargs)

        return backward

    def _save(self, inner: Call) -> Call:
        over = guarded(self._rounds.over)

        def save(*args: Any, **kwargs: Any) -> Any:
            over()
            return inner(*args, **kwargs)

        return save

    def _before_update(self, optimizer: Any) -> None:
        self._anatomy.before_update(optimizer)

    def _after_update(self, _optimizer: Any) -> None:
        self._anatomy.after_update()
        if self._rounds.sizes is None:  # no loader: the size of a batch is the script's own affair
            self._rounds.resizes = False
            self._rounds.begins(0)
        else:
            self._rounds.updated()


def _counted_rows(batch: Any, torch: Any) -> int:
    try:
        return rows_of(batch, torch)
    except CannotSplit:
        return 0


def resized(value: Any, rows: int, wanted: int, torch: Any) -> Any:
    """The same nest with as many rows as are wanted, repeated where there are not enough; all of it copied, as a loader's
    batch is its own."""
    if isinstance(value, torch.Tensor):
        if not value.dim() or value.shape[0] != rows:
            return value
        if wanted <= rows:
            return value[:wanted].clone()
        return value.index_select(0, torch.arange(wanted, device=value.device) % rows)
    if is_by_row(value, rows, torch):
        if isinstance(value, (list, tuple)):
            return type(value)(value[i % rows] for i in range(wanted))
        return value[[i % rows for i in range(wanted)]]
    parts = opened(value)
    if parts is None:
        return value
    return refilled(value, iter([resized(part, rows, wanted, torch) for _, part in parts]))
