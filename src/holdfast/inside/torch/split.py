"""Out of memory in a step of a trainer (Hugging Face's, Lightning's): the same batch again, in pieces.

A step is run as the trainer has it. Only where memory runs out in it does anything happen: what it changed is put back
(`traces`), the share of each part is found by trying (`shares`), and the trainer's own step is run on one part after
another, each with its share. Where that would not be the same, the error goes on as it came.
"""

from __future__ import annotations

import contextlib
import math
import sys
import traceback
from typing import Any, Iterator, Optional

from ..guard import guarded, unseen
from ..memory import forget, give_back, is_out_of_memory, tell_caught, wanted
from ..pieces import Pieces, bounds
from ..telemetry import Recorder
from .effects import Effects
from .outermost import here
from .shares import CannotSplit, CannotTell, Precision, Shares, Weighing, precision_of, share_of, tried, weighings
from .slicing import CannotSlice, cut, rows_of, tail_of
from .traces import Traces, additions, aside, without_chance

MORE_TRIALS, MORE_BATCHES = 4, 3  # in a batch, and such batches
SAMPLE = 4096  # numbers of each parameter's gradient that are compared


class Step:
    """One batch of a trainer. `whole` is the trainer's own call, and all that happens where memory is enough."""

    model: Any
    batch: Any
    keeps_gradients = True  # those that are there before; else the step drops them itself
    mixed = False  # computes in half precision

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


class Split:
    """Of one model of one trainer."""

    def __init__(self, recorder: Recorder, model: Any, unfit: str = "") -> None:
        self._torch: Any = sys.modules["torch"]
        self._recorder = recorder
        self.refused = unfit  # in words; then steps are the trainer's own, and nothing else
        self._said: set[str] = set()
        self._more = MORE_BATCHES
        self._traces = Traces(self._torch, model)
        self._shares = Shares()
        self._effects = Effects(self._torch, self._traces)
        k = int((recorder.settings.get("rescue") or {}).get("k") or 1)
        # A run that was killed on the CPU begins in pieces, and would be killed again by larger ones.
        tries = k == 1 or bool(self._torch.cuda.is_initialized())
        self.pieces = _ByLength(k, least=2 if self._traces.normalising else 1, tries=tries)
        if not unfit:
            recorder.event("rescue.ready", k=k)

    def look_again(self, model: Any) -> None:
        """At the model's parameters: between two fits it may have been moved or changed."""
        self._traces = Traces(self._torch, model)
        self._effects.traces = self._traces

    def run(self, step: Step) -> Any:
        if self.refused:  # calls of its modules may still be run in pieces
            return self._run(step)
        before, here.inside = here.inside, True
        try:
            return self._run(step)
        finally:
            here.inside = before

    def _run(self, step: Step) -> Any:
        if not self.pieces.whole and not self.refused:
            done = self._begun_in_pieces(step)
            if done is not None:
                return done[0]
        noted = not self.refused and self._note(step.keeps_gradients)
        try:
            result = step.whole()
        except (MemoryError, RuntimeError) as error:  # PyTorch's own is one of these
            unseen(error)
            if not is_out_of_memory(error):
                raise
            self._caught(1, error)
            if not noted:
                self._refuse(self.refused or "what it changes could not be noted", error)
                raise
            failure = error
        else:
            self._traces.let_go()
            return result
        return self._again(step, failure)

    @guarded
    def _note(self, gradients: bool) -> bool:
        self._traces.note(gradients)
        return True

    def _begun_in_pieces(self, step: Step) -> Optional[tuple[Any]]:
        """None: this batch is to be tried in one piece."""
        try:
            rows, tail = rows_of(step.batch, self._torch), tail_of(step.batch, self._torch)
        except CannotSlice:
            return None
        if self.pieces.count(rows, tail) == 1:
            return None
        try:
            way = self._way(step, rows, tail)
            return (self._in_pieces(step, rows, tail, way, {}),)
        except CannotSplit as reason:  # before the first piece, or in it
            self._refuse(str(reason))
            step.failed(None)
            if self._traces.undo():
                raise RuntimeError(f"holdfast: this batch cannot be trained in pieces: {reason}") from None
            return None

    # -- after a failure

    def _again(self, step: Step, failure: BaseException) -> Any:
        told = traceback.format_exception(type(failure), failure, failure.__traceback__)
        try:
            rows, tail, complete = self._undone(step, failure)
            give_back()
            way = self._way(step, rows, tail)
            return self._in_pieces(step, rows, tail, way, dict.fromkeys(complete, rows))
        except (CannotSplit, CannotSlice) as reason:
            self._refuse(str(reason), failure)
        except Exception as error:  # noqa: BLE001 - what goes wrong in pieces did not go wrong before
            if not is_out_of_memory(error):
                self._refuse(f"in pieces it fails: {type(error).__name__}: {error}"[:200], failure)
            forget(error)
        if hasattr(failure, "add_note"):  # its own traceback held what had to be freed
            failure.add_note("".join(told))
        raise failure

    def _undone(self, step: Step, failure: BaseException) -> tuple[int, Any, list[Any]]:
        step.failed(failure)
        forget(failure)
        complete = self._traces.undo()
        rows, tail = rows_of(step.batch, self._torch), tail_of(step.batch, self._torch)
        self._shrunk(rows, tail, rows)
        return rows, tail, complete

    def _shrunk(self, rows: int, tail: Any, failed_rows: int) -> None:
        if self.pieces.did_not_fit(failed_rows, tail, 1) is None:
            raise CannotSplit("one row at a time does not fit" if self.pieces.least == 1 else "two rows do not fit")
        self._recorder.event("rescue.k", k=self.pieces.count(rows, tail), where="train")

    def _caught(self, k: int, error: BaseException) -> None:
        tell_caught(self._recorder, "train", k, error)

    def _refuse(self, reason: str, error: Optional[BaseException] = None) -> None:
        self.refused = self.refused or reason
        if reason not in self._said:
            self._said.add(reason)
            words = wanted(error) if error is not None else ""
            self._recorder.event("rescue.refused", reason=reason, where="train", wanted=words)

    # -- in pieces

    def _in_pieces(self, step: Step, rows: int, tail: Any, way: Weighing, done: dict[Any, int]) -> Any:
        """`done`: parameters whose gradient has the rows before that one in it already."""
        step.begins()
        self._effects.begin(rows)
        position = 0
        ran: list[int] = []
        shares: list[float] = []
        while position < rows:
            segment = min((until for until in done.values() if until > position), default=rows) - position
            k = self.pieces.count(segment, tail)
            end = position + bounds(segment, k)[0][1]
            share = share_of(way, position, end)
            if share > 0:  # a part in which nothing counts has no gradient, and its mean is no number
                complete = [parameter for parameter, until in done.items() if until > position]
                fresh = self._one(step, (position, end), share, complete, rows, tail)
                if fresh is not None:
                    done.update(dict.fromkeys(fresh, end))
                    continue
                ran.append(end - position)
                shares.append(share)
            position = end
        self._effects.end()
        self._try_more(step, rows, max(ran, default=1))
        result = step.ends(ran, shares, self._shares.known or [])
        self._traces.let_go()
        before = self.pieces.count(rows, tail)
        now = self.pieces.fitted(rows, tail, before)
        if now != before:
            self._recorder.event("rescue.k", k=now, where="train")
        self._disclose(step)
        return result

    def _one(
        self, step: Step, rows: tuple[int, int], share: float, complete: list[Any], of: int, tail: Any
    ) -> Optional[list[Any]]:
        """None when it is done; else it did not fit, and these have their gradient all the same."""
        part = cut(step.batch, *rows, self._torch, of)
        with aside(complete):
            failure = self._attempt(step, part, share, complete, rows[1] - rows[0])
            if failure is None:
                return None
            self._caught(self.pieces.count(of, tail), failure)
            try:
                step.failed(failure)
                forget(failure)
                fresh = self._traces.undo()
                self._shrunk(of, tail, rows[1] - rows[0])
            except CannotSplit as reason:
                self._refuse(str(reason), failure)
                raise failure from None
        give_back()
        return fresh

    def _attempt(self, step: Step, part: Any, share: float, complete: list[Any], rows: int) -> Optional[BaseException]:
        others = self._traces.other_buffers() if not self._effects.looked else {}
        self._traces.note()
        try:
            with self._counted(complete):
                step.piece(part, share)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return error
        self._effects.piece(rows, others)
        return None

    @contextlib.contextmanager
    def _counted(self, complete: list[Any]) -> Iterator[None]:
        if not complete:
            yield
            return
        with additions(complete) as counts:
            yield
        if any(count > 1 for count in counts.values()):
            raise CannotSplit("a gradient that was there before is half changed")

    @guarded
    def _disclose(self, step: Step) -> None:
        for text in [*self._effects.texts(), *step.disclosures()]:
            if text not in self._said:
                self._said.add(text)
                self._recorder.event("rescue.disclosed", text=text)

    # -- the share of a part

    def _way(self, step: Step, rows: int, tail: Any) -> Weighing:
        batch = weighings(step.batch, rows, self._torch, self._shares.known)
        if not self._shares.is_settled(batch):
            few = -(-rows // self.pieces.count(rows, tail))
            try:
                self._settle(step, batch, rows, few, gradients=True)
            except CannotTell:
                try:
                    self._settle(step, batch, rows, few, gradients=False)
                except CannotTell:
                    raise CannotSplit("a few rows of it could not be tried") from None
        return self._shares.way(batch)

    def _settle(self, step: Step, batch: dict[str, Weighing], rows: int, few: int, gradients: bool) -> None:
        torch, parameters = self._torch, self._traces.parameters

        def measure(begin: int, end: int) -> Any:
            try:
                loss = self._loss(step, cut(step.batch, begin, end, torch, rows), gradients)
                return _sample(torch, parameters) if gradients else loss
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


def _sample(torch: Any, parameters: list[Any]) -> Any:
    """Some numbers of each gradient: the whole of it, three times over, may not fit."""
    taken = []
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        gradient = parameter.grad
        stride = max(1, parameter.numel() // SAMPLE)
        if gradient is None:
            taken.append(torch.zeros(-(-parameter.numel() // stride), dtype=torch.float64))
            continue
        dense = gradient.detach().to_dense() if gradient.is_sparse else gradient.detach()
        taken.append(dense.reshape(-1)[::stride].double().cpu())
    return torch.cat(taken)
