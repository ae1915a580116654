"""Out of memory in a training step: whole, else in pieces, else refused; and whole again later.

One loop for every framework that has a step function: what it must be able to do stands in `Driver` (run a batch whole, put
back what a failed attempt changed, run a part of a batch, put the parts together with one update). Loops on torch have
none: `torch/loop_rescue.py`. Sizes: `piece_sizes.Pieces`.
"""

from __future__ import annotations

import re
import traceback
from typing import Any, Callable, List, Optional, Tuple, TypeVar

from .never_raise import guarded, outcome
from .out_of_memory import attempt, forget, give_back, is_out_of_memory, tell_caught, wanted
from .piece_sizes import AGAIN_AFTER, Pieces, bounds
from .user_errors import passing

COLOURS = re.compile("\x1b\\[[0-9;]*m")  # Keras's own


class CannotSplit(Exception):
    """This batch, or any of this model, is not cut: in words for the record and the verdict."""


class MustStartAgain(CannotSplit):
    """This process cannot go on; the next attempt can, in pieces. The driver has told how many."""


class Driver:
    """A batch of one framework. Everything here may raise the framework's own out-of-memory error."""

    where = "train"  # or evaluate, predict

    def size(self, batch: Any) -> Tuple[int, Any]:
        """Rows, and the shape of a row; CannotSplit where there is no common first axis."""
        raise NotImplementedError

    def whole(self, batch: Any) -> Any:
        """The framework's own step."""
        raise NotImplementedError

    def whole_failed(self, error: BaseException) -> None:
        """Puts back what the failed step changed, or CannotSplit."""

    def foresee(self, batch: Any, rows: int, tail: Any) -> Optional[int]:
        """The rows a piece may have, where the batch will not fit as it is; called before each batch."""
        return None

    def measure(self, batch: Any, rows: int, tail: Any) -> Optional[int]:
        """The same after the whole batch did not fit; None where sizes are to be tried."""
        return None

    def begin(self, batch: Any, rows: int, k: int) -> None:
        """Before the first piece, and again before the first one of a new attempt. CannotSplit where the parts would not
        make the whole."""

    def piece(self, batch: Any, begin: int, end: int) -> None:
        raise NotImplementedError

    def reach(self, position: int, rows: int) -> int:
        """The row that a piece from here may end at, at most: one that failed may have left something complete up to its
        own end."""
        return rows

    def piece_failed(self, position: int, error: Optional[BaseException]) -> int:
        """Puts back what that piece changed and returns the row to go on from: 0 where sums were begun anew. Without an
        error: all pieces so far are to be forgotten. CannotSplit where that cannot be."""
        raise NotImplementedError

    def end(self, batch: Any) -> Any:
        """After the last piece: the update, and what `whole` would have returned."""
        raise NotImplementedError

    def is_of_the_step(self, error: BaseException) -> bool:
        """An error in a piece that the whole would have raised as well, or that can no longer be undone."""
        return False

    def grows_to(self, rows: int, tail: Any) -> Optional[int]:
        """The rows a piece may have by now, by what was measured; None where it is to be tried."""
        return None

    def disclosures(self) -> List[str]:
        """What is not the same in pieces."""
        return []

    def would_help(self) -> List[str]:
        """Where one row is too much: what would help, with its size."""
        return []

    def device_of(self, error: BaseException) -> Optional[str]:
        """`gpu` or `host` where this is known; else the words of the error decide."""
        return None


class Engine:
    """One kind of step of one model."""

    def __init__(self, driver: Driver, pieces: Pieces, recorder: Any) -> None:
        self.driver, self.pieces, self._recorder = driver, pieces, recorder
        self._told_k = 0
        self._measures = False  # a whole batch has just not fitted
        self._steps_in_pieces = 0
        self._position = 0  # the first row of the batch that is not done
        self._said: set[str] = set()

    def run(self, batch: Any) -> Any:
        """The result of the batch, or the error it would have raised without us."""
        with passing:
            return self._run(batch)

    def _run(self, batch: Any) -> Any:
        failure: Optional[BaseException] = None
        while True:
            rows, tail, k = self._plan(batch)
            try:
                if k > 1:
                    return self._in_pieces(batch, rows, tail)
                result, error = attempt(self.driver.whole, batch)
            except CannotSplit as reason:
                self._refuse(str(reason), failure)
                self._forget_pieces(reason, failure)
                if failure is not None:
                    raise failure from None
            else:
                if error is None:
                    return result
                if not self._whole_undone(batch, error):
                    raise error
                failure = _without_frames(error)
            give_back()

    def run_whole(self, batch: Any) -> Any:
        """The same for a batch of a shape that has fitted so far: nothing is looked at before it fails."""
        result, error = attempt(self.driver.whole, batch)
        if error is None:
            return result
        if not self._whole_undone(batch, error):
            with passing:
                raise error
        _without_frames(error)
        give_back()
        return self.run(batch)

    def _plan(self, batch: Any) -> Tuple[int, Any, int]:
        if self.pieces.refused:
            return 1, None, 1
        try:
            rows, tail = self.driver.size(batch)
        except CannotSplit:
            return 1, None, 1
        try:
            if self._measures:
                self._measured(batch, rows, tail)
            fit = self.driver.foresee(batch, rows, tail)
        except CannotSplit as reason:
            self._refuse(str(reason), None)
            return rows, tail, 1
        if fit is not None:
            self.pieces.foreseen(tail, fit)
        return rows, tail, self.pieces.count(rows, tail)

    def _whole_undone(self, batch: Any, error: BaseException) -> bool:
        """And there is a smaller size to try."""
        self._caught(1, error)
        if self.pieces.refused:
            return False
        try:
            self.driver.whole_failed(error)
            rows, tail = self.driver.size(batch)
        except MustStartAgain as reason:
            self.pieces.refused = str(reason)
            return False
        except CannotSplit as reason:
            self._refuse(str(reason), error)
            return False
        self._measures = self._smaller(rows, tail, 1, error)
        return self._measures

    def _measured(self, batch: Any, rows: int, tail: Any) -> None:
        """Once the failed attempt has given its memory back."""
        self._measures = False
        fit = self.driver.measure(batch, rows, tail)
        if fit is not None:
            self.pieces.foreseen(tail, fit)
            self._tell_k(self.pieces.count(rows, tail))

    def _in_pieces(self, batch: Any, rows: int, tail: Any) -> Any:
        self._position = 0
        while True:
            k = self.pieces.count(rows, tail)
            result, error = outcome(self._piece_by_piece, batch, rows, k)
            if error is None:
                self._fitted(rows, tail, k)
                return result
            if isinstance(error, CannotSplit):
                raise error
            if not is_out_of_memory(error):
                if self.driver.is_of_the_step(error):
                    raise error
                raise CannotSplit(_in_words(error))  # whole, it says for itself what is wrong
            self._position = self._piece_undone(rows, tail, k, self._position, error)
            if self._position < 0:
                raise error
            _without_frames(error)
            give_back()

    def _piece_by_piece(self, batch: Any, rows: int, k: int) -> Any:
        """From where it stands, so that after a failure only what is left is run again."""
        driver, size = self.driver, -(-rows // k)
        if self._position == 0:
            driver.begin(batch, rows, k)
        while self._position < rows:
            left = driver.reach(self._position, rows) - self._position
            end = self._position + bounds(left, min(-(-left // size), left // self.pieces.least))[0][1]
            driver.piece(batch, self._position, end)
            self._position = end
        return driver.end(batch)

    def _piece_undone(self, rows: int, tail: Any, k: int, position: int, error: BaseException) -> int:
        """The row to go on from, in smaller pieces; -1 where it cannot."""
        self._caught(k, error)
        try:
            position = self.driver.piece_failed(position, error)
        except CannotSplit as reason:
            self._refuse(str(reason), error)
            return -1
        return position if self._smaller(rows, tail, k, error) else -1

    def _forget_pieces(self, reason: CannotSplit, failure: Optional[BaseException]) -> None:
        try:
            self.driver.piece_failed(0, None)
        except CannotSplit:
            if failure is None:  # else that is raised, and nothing is run again
                raise RuntimeError(f"holdfast: this batch cannot be trained in pieces: {reason}") from None

    # -- told

    def _caught(self, k: int, error: BaseException) -> None:
        tell_caught(self._recorder, self.driver.where, k, error, self.driver.device_of(error))

    def _smaller(self, rows: int, tail: Any, k: int, error: BaseException) -> bool:
        grown = self.pieces.did_not_fit(rows, tail, k)
        if grown is None:
            least = "one row at a time does" if self.pieces.least == 1 else f"{self.pieces.least} rows at a time do"
            self._refuse(f"{least} not fit", error)
            helps = guarded(self.driver.would_help)()
            self._recorder.event("rescue.exhausted", where=self.driver.where, help=helps or [])
            return False
        self._tell_k(grown)
        return True

    def _fitted(self, rows: int, tail: Any, k: int) -> None:
        self._disclose()
        now = self.pieces.fitted(rows, tail, k)
        self._steps_in_pieces += 1
        if now == k and not self._steps_in_pieces % AGAIN_AFTER:
            fit = guarded(self.driver.grows_to)(rows, tail)
            if fit is not None and fit >= 2 * -(-rows // k):
                self.pieces.foreseen(tail, fit)
                now = self.pieces.count(rows, tail)
        if now != k or not self._told_k:
            self._tell_k(now)

    def _tell_k(self, k: int) -> None:
        """The one handed on, too, once it has proved itself: the next run begins with it."""
        self._told_k = k
        self._recorder.cut(k, self.driver.where)

    @guarded
    def _disclose(self) -> None:
        for text in self.driver.disclosures():
            if text not in self._said:
                self._said.add(text)
                self._recorder.event("rescue.disclosed", text=text)

    def _refuse(self, reason: str, error: Optional[BaseException]) -> None:
        self.pieces.refused = self.pieces.refused or reason
        if reason not in self._said:
            self._said.add(reason)
            words = wanted(error) if error is not None else ""
            self._recorder.event("rescue.refused", reason=reason, where=self.driver.where, wanted=words)


Made = TypeVar("Made")


def attempted(
    work: Callable[[], Made],
    failure: Optional[BaseException],
    refuse: Callable[[str, Optional[BaseException]], None],
) -> Optional[Made]:
    """What failed as a whole, in pieces. None where it cannot be done; then where it failed is in the error's notes."""
    told = [] if failure is None else traceback.format_exception(type(failure), failure, failure.__traceback__)
    made: Optional[Made]
    made, error = outcome(work)
    if error is None:
        return made
    if isinstance(error, CannotSplit):  # what goes wrong in pieces did not go wrong before
        refuse(str(error), failure)
    elif failure is None or not is_out_of_memory(error):
        refuse(f"in pieces it fails: {_in_words(error)}", failure)
    forget(error)
    if failure is not None and hasattr(failure, "add_note"):
        failure.add_note("".join(told))
    return None


def _without_frames(error: BaseException) -> BaseException:
    """They hold what has to be freed; what they said stays with the error, should it have to go on after all."""
    if hasattr(error, "add_note") and not getattr(error, "__notes__", None):
        error.add_note("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    forget(error)
    return error


def _in_words(error: BaseException) -> str:
    lines = [line.strip() for line in COLOURS.sub("", str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:300]
