"""Out of memory in a step on torch (Hugging Face's and Lightning's trainers, `holdfast.backward`): the same batch in pieces.

A step is run as the trainer has it. Only where memory runs out in it does anything happen: what it changed is put back
(`step_undo`), the share of each part is found by trying (`loss_shares`), and the trainer's own step is run on one part after
another, each with its share. Where that would not be the same, the error goes on as it came.
"""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any, Iterator, Optional

from ..never_raise import guarded, unseen
from ..out_of_memory import forget, give_back, is_out_of_memory
from ..piece_sizes import Pieces
from ..rescue_engine import CannotSplit, Driver, Engine
from .batch_slices import cut, rows_of, tail_of
from .gradient_samples import sampled
from .loss_shares import CannotTell, Precision, Shares, Weighing, precision_of, share_of, tried, weighings
from .outermost_call import here
from .split_effects import Effects
from .step_undo import StepUndo, additions, aside, without_chance

MORE_TRIALS, MORE_BATCHES = 4, 3  # in a batch, and such batches
ALL_ROWS = sys.maxsize


class Step:
    """One batch of a trainer. `whole` is the trainer's own call, and all that happens where memory is enough."""

    model: Any
    batch: Any
    keeps_gradients = True  # those that are there before; else the step drops them itself
    mixed = False  # computes in half precision
    share_by = ""  # the way to weigh, where the script says it; then that one is tried and no other

    def whole(self) -> Any:
        raise NotImplementedError

    def failed(self, error: Optional[BaseException]) -> None:
        """Puts back what only this trainer knows of. Called after each attempt that failed, by this."""

    def begins(self) -> None:
        """Before the first piece."""

    def piece(self, batch: Any, share: float) -> None:
        """Forward and backward, with gradients of this share."""
        raise NotImplementedError

    def ends(self, rows: list[int], shares: list[float], known: list[str]) -> Any:
        """After the last piece: what `whole` would have returned. `known` are the ways to weigh that hold."""
        raise NotImplementedError

    def trial(self, batch: Any, gradients: bool) -> Any:
        """The loss of some rows as a tensor, and unless told otherwise their gradients, with no share. Leaves no trace."""
        raise NotImplementedError

    def heard(self, of_parts: dict[str, tuple[float, float]]) -> None:
        """The last three trials were a whole and its two parts, with these shares by each way to weigh."""

    def wants_more(self, known: list[str]) -> bool:
        """Trials, on other rows: for what it learns from them beside the shares, for which these ways hold."""
        return False

    def disclosures(self) -> list[str]:
        return []


class _ByLength(Pieces):
    """A new length of rows begins as the lengths near it do: with padding to the longest there are many."""

    def _guess(self, rows: int, tail: Any) -> int:
        size = _size(tail)
        shorter = [(_size(known), most) for known, most in self._rows.items() if _size(known) <= size]
        if not shorter:
            return super()._guess(rows, tail)
        near, most = max(shorter)
        return max(self.least, min(most, int(most * near / max(size, 1)) or 1))


def _size(tail: Any) -> int:
    return sum(math.prod(shape) for shape in tail)


class Split(Driver):
    """Of one model of one trainer. Gradients of pieces are added up where they belong, so a piece that fails is undone alone
    and the next attempt goes on at its row."""

    def __init__(self, recorder: Any, model: Any, unfit: str = "") -> None:
        self._torch: Any = sys.modules["torch"]
        self._recorder = recorder
        self._unfit = unfit  # in words; then steps are the trainer's own, and nothing else
        self._more = MORE_BATCHES
        self._traces = StepUndo(self._torch, model)
        self._shares = Shares()
        self._effects = Effects(self._torch, self._traces)
        rescue = recorder.settings.get("rescue") or {}
        k = int(rescue.get("k") or 1)
        # A run that was killed on the CPU begins in pieces, and would be killed again by larger ones.
        tries = k == 1 or bool(self._torch.cuda.is_initialized())
        self.pieces = _ByLength(k, least=2 if self._traces.normalising else 1, tries=tries)
        self._engine = Engine(self, self.pieces, recorder)
        self._begin_batch(None)
        if not unfit:
            recorder.event("rescue.ready", k=k)

    @property
    def refused(self) -> str:
        return self._unfit or self.pieces.refused

    def look_again(self, model: Any) -> None:
        """At the model's parameters: between two fits it may have been moved or changed."""
        if not self._traces.are_of(model):
            self._traces = self._effects.traces = StepUndo(self._torch, model)

    def run(self, step: Step) -> Any:
        self._begin_batch(step)
        # Where it is refused, calls of its modules may still be run in pieces.
        before, here.inside = here.inside, here.inside or not self.refused
        try:
            return self._engine.run(step)
        except BaseException as error:
            unseen(error)
            self._drop_parts()
            raise
        finally:
            here.inside = before
            self._begin_batch(None)

    @guarded
    def _drop_parts(self) -> None:
        """Of a batch that failed in pieces: with no gradients before it there are none after it."""
        if self._begun and not self._ending and not self._had_gradients:
            for parameter in self._traces.parameters:
                parameter.grad = None

    def _begin_batch(self, step: Optional[Step]) -> None:
        self._step: Any = step
        self._noted: Optional[bool] = False
        self._whole_failed = self._had_gradients = self._begun = self._ending = False
        self._weighing: Weighing = None
        self._rows = self._end = 0
        self._done: dict[Any, int] = {}  # parameters whose gradient has the rows before that one in it already
        self._ran: list[int] = []
        self._parts: list[float] = []

    # -- as the engine has it

    def size(self, batch: Step) -> tuple[int, Any]:
        if self._unfit or (self.pieces.whole and not self._whole_failed):  # a batch that fits is not even looked at
            raise CannotSplit(self._unfit or "every batch so far fitted as it is")
        return rows_of(batch.batch, self._torch), tail_of(batch.batch, self._torch)

    def whole(self, batch: Step) -> Any:
        self._noted = not self.refused and self._note(batch.keeps_gradients)
        try:
            result = batch.whole()
        except BaseException as error:
            unseen(error)
            raise
        self._traces.let_go()
        return result

    @guarded
    def _note(self, gradients: bool) -> bool:
        self._traces.note(gradients)
        return True

    def whole_failed(self, error: BaseException) -> None:
        if not self._noted:
            raise CannotSplit(self._unfit or "what it changes could not be noted")
        self._whole_failed = True
        self._step.failed(error)
        self._done = dict.fromkeys(self._traces.undo(), ALL_ROWS)

    def begin(self, batch: Step, rows: int, k: int) -> None:
        if self._begun:  # a first piece that failed was undone
            return
        self._rows = rows
        self._weighing = self._way(batch, rows, -(-rows // k))
        batch.begins()
        self._had_gradients = any(parameter.grad is not None for parameter in self._traces.parameters)
        self._effects.begin(rows)
        self._begun = True

    def reach(self, position: int, rows: int) -> int:
        return min([until for until in self._done.values() if until > position] + [rows])

    def piece(self, batch: Step, begin: int, end: int) -> None:
        self._end = end
        share = share_of(self._weighing, begin, end)
        if share <= 0:  # a part in which nothing counts has no gradient, and its mean is no number
            return
        complete = self._complete(begin)
        others = self._traces.other_buffers() if not self._effects.looked else {}
        with aside(complete):
            self._traces.note()
            with _once(complete):
                batch.piece(cut(batch.batch, begin, end, self._torch, self._rows), share)
        self._effects.piece(end - begin, others)
        self._ran.append(end - begin)
        self._parts.append(share)

    def _complete(self, position: int) -> list[Any]:
        return [parameter for parameter, until in self._done.items() if until > position]

    def piece_failed(self, position: int, error: Optional[BaseException]) -> int:
        if self._ending:
            raise CannotSplit("memory ran out after the last of its pieces")
        self._step.failed(error)
        fresh = self._traces.undo(self._complete(position))
        if error is None and (self._ran or self._done or fresh):
            raise CannotSplit("gradients of its pieces are there already")
        self._done.update(dict.fromkeys(fresh, self._end))
        return position

    def is_of_the_step(self, error: BaseException) -> bool:
        return self._ending or (bool(self._ran or self._done) and not self._whole_failed)

    def end(self, batch: Step) -> Any:
        self._ending = True
        self._effects.end()
        self._try_more(batch, self._rows, max(self._ran, default=1))
        result = batch.ends(self._ran, self._parts, self._shares.known or [])
        self._traces.let_go()
        return result

    def disclosures(self) -> list[str]:
        return [*self._effects.texts(), *self._step.disclosures()]

    # -- the share of a part

    def _way(self, step: Step, rows: int, few: int) -> Weighing:
        said = [step.share_by] if step.share_by else None
        batch = weighings(step.batch, rows, self._torch, said or self._shares.known)
        if said:
            batch = {step.share_by: batch[step.share_by]}
        if not self._shares.is_settled(batch):
            try:
                self._settle(step, batch, rows, few, gradients=True)
            except CannotTell:
                try:
                    self._settle(step, batch, rows, few, gradients=False)
                except CannotTell:
                    if not said:
                        raise CannotSplit("a few rows of it could not be tried") from None
                    self._shares.known = said
        return self._shares.way(batch)

    def _settle(self, step: Step, batch: dict[str, Weighing], rows: int, few: int, gradients: bool) -> None:
        torch, parameters = self._torch, self._traces.parameters

        def measure(begin: int, end: int) -> Any:
            try:
                loss = self._loss(step, cut(step.batch, begin, end, torch, rows), gradients)
                return sampled(torch, ((p, p.grad) for p in parameters if p.requires_grad)) if gradients else loss
            finally:
                for parameter in parameters:
                    parameter.grad = None

        precision = precision_of(torch, parameters, step.mixed)
        if not gradients:  # a loss is one number: it must be nearer
            precision = Precision(min(precision.within, 5e-3), precision.chance)
        self._traces.note(gradients=False)
        try:
            with aside(parameters), without_chance(step.model):
                self._shares.settle(batch, rows, few, measure, precision, step.heard)
        finally:
            self._traces.undo()

    @guarded
    def _try_more(self, step: Step, rows: int, few: int) -> None:
        """On as many rows as were just seen to fit, without gradients."""
        torch = self._torch
        if not self._more or not step.wants_more(self._shares.known or []):
            return
        self._more -= 1
        batch = weighings(step.batch, rows, torch)
        few = min(max(2, few), rows)
        self._traces.note(gradients=False)
        try:
            with without_chance(step.model):
                for number in range(MORE_TRIALS):
                    if not step.wants_more(self._shares.known or []):
                        return
                    begin = (rows - few) * number // (MORE_TRIALS - 1)
                    with contextlib.suppress(CannotTell):
                        tried(
                            batch,
                            (begin, begin + max(1, few // 3), begin + few),
                            lambda begin, end: self._loss(step, cut(step.batch, begin, end, torch, rows)),
                            step.heard,
                        )
        finally:
            self._traces.undo()

    def _loss(self, step: Step, part: Any, gradients: bool = False) -> Any:
        try:
            return step.trial(part, gradients).detach().double().reshape(1).cpu()
        except CannotSplit:
            raise
        except Exception as error:  # noqa: BLE001 - the batch itself may be fine: it is not split
            if not is_out_of_memory(error):
                raise CannotSplit(f"a few rows of it fail: {type(error).__name__}: {error}"[:200]) from None
            failure = error
        forget(failure)
        give_back()
        raise CannotTell


@contextlib.contextmanager
def _once(complete: list[Any]) -> Iterator[None]:
    """That autograd adds to each of them once: then what was there before is whole."""
    if not complete:
        yield
        return
    with additions(complete) as counts:
        yield
    if any(count > 1 for count in counts.values()):
        raise CannotSplit("a gradient that was there before is half changed")
