"""Out of memory in loops people write: the outermost call of a module is run in pieces, the script stays as it is.

`whole` is the module's own call and all that happens where memory is enough. Where it is not, what the failed call
changed is put back, a few rows are tried as one piece and as two, and the same call is run in pieces (`recompute`).
"""

from __future__ import annotations

import traceback
import weakref
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from ..guard import guarded, unseen
from ..memory import forget, give_back, is_out_of_memory, tell_caught, wanted
from ..pieces import Pieces, bounds
from ..telemetry import Recorder
from . import unfit
from .effects import Effects
from .failed_backward import Backward, Record
from .nests import tensors_of
from .outermost import here
from .recompute import Call, autocasts, casting, random_state
from .shares import CannotSplit
from .traces import Traces
from .trial import Trial


class Noted(NamedTuple):
    """Of a call that is about to be made whole."""

    random: List[Any]
    versions: List[int]  # of its inputs and parameters
    number: int  # of the next node in autograd's graph
    autocasts: List[Tuple[str, bool, Any]]

    def casting(self, torch: Any) -> Any:
        return casting(torch, self.autocasts)


class Unedited:
    """For every module of this process."""

    def __init__(self, recorder: Recorder, torch: Any, original: Callable[..., Any]) -> None:
        self.recorder, self.torch, self.original = recorder, torch, original
        self.settings = recorder.settings.get("rescue") or {}
        self.k = int(self.settings.get("k") or 1)
        self._known: dict[int, Outermost] = {}
        self._said: set[str] = set()
        self.backward = Backward(self)
        self.next_number: Callable[[], int] = torch.autograd._get_sequence_nr

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """In training mode, with gradients, and not within another one that is looked after."""
        known = self._known.get(id(module))
        if known is None or known.module() is not module:
            known = self._meet(module)
        if known is None:
            return self.original(module, *args, **kwargs)
        here.inside = True
        try:
            return known.run(module, args, kwargs)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            here.inside = False

    @guarded
    def _meet(self, module: Any) -> Optional[Outermost]:
        """None where nothing is trained."""
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return None
        key = id(module)
        known = self._known[key] = Outermost(self, module)
        weakref.finalize(module, self._known.pop, key, None)
        return known

    def say(self, kind: str, **data: object) -> None:
        """Once."""
        text = f"{kind} {data}"
        if text not in self._said:
            self._said.add(text)
            self.recorder.event(kind, **data)


class Outermost:
    """One module whose call is the outermost one."""

    def __init__(self, rescue: Unedited, module: Any) -> None:
        torch, recorder = rescue.torch, rescue.recorder
        self.module = weakref.ref(module)
        self._rescue, self._torch, self._original = rescue, torch, rescue.original
        self.refused = unfit.why_not(module, torch)
        self._traces: Optional[Traces] = None
        self._effects: Optional[Effects] = None
        self._trial: Optional[Trial] = None
        normalises = unfit.normalises(module, torch)
        on_cpu = all(parameter.device.type == "cpu" for parameter in module.parameters())
        self.pieces = Pieces(rescue.k, least=2 if normalises else 1, tries=rescue.k == 1 or not on_cpu)
        if not self.refused:
            recorder.phase("train")  # a kill in the very first step is known to have begun
            if on_cpu:
                rescue.say("rescue.ready", k=rescue.k)

    def run(self, module: Any, args: Any, kwargs: Any) -> Any:
        if not self.pieces.whole and not self.refused:
            size = self.size(args, kwargs)
            if size is not None and self.pieces.count(*size) > 1:
                try:
                    return self._in_pieces(module, args, kwargs, size)
                except CannotSplit as reason:
                    self._refuse(str(reason))
        noted = None if self.refused else self._note(module, args, kwargs)
        try:
            found = self._original(module, *args, **kwargs)
        except (MemoryError, RuntimeError) as error:
            unseen(error)
            if not is_out_of_memory(error):
                raise
            tell_caught(self._rescue.recorder, "train", 1, error)
            if noted is None:
                self._refuse(self.refused or "what it changes could not be noted", error)
                raise
            failure = error
        else:
            if noted is not None:
                after = self._rescue.next_number()
                self._rescue.backward.follow(Record(self, module, args, kwargs, noted, after), found)
            return found
        done = self._again(module, args, kwargs, noted, failure)
        if done is None:
            failure.__traceback__ = None  # which held what had to be freed; it is in its notes
            raise failure
        return done[0]

    # -- the usual path

    @guarded
    def _note(self, module: Any, args: Any, kwargs: Any) -> Optional[Noted]:
        if self._traces is None:
            self._traces = Traces(self._torch, module)
        self._traces.note(gradients=False)
        return Noted(
            random_state(self._torch), self._versions(args, kwargs), self._rescue.next_number(), autocasts(self._torch)
        )

    def _versions(self, args: Any, kwargs: Any) -> List[int]:
        return [t._version for t in (*tensors_of((args, kwargs), self._torch), *self.parameters())]

    def parameters(self) -> List[Any]:
        """Those that train."""
        assert self._traces is not None
        return [p for p in self._traces.parameters if p.requires_grad]

    # -- after a failure

    def _again(self, module: Any, args: Any, kwargs: Any, noted: Noted, failure: BaseException) -> Optional[Tuple[Any]]:
        """None where it cannot be done."""
        told = traceback.format_exception(type(failure), failure, failure.__traceback__)
        try:
            size = self._undone(args, kwargs, noted, failure)
            return (self._in_pieces(module, args, kwargs, size),)
        except CannotSplit as reason:
            self._refuse(str(reason), failure)
        except Exception as error:  # noqa: BLE001 - what goes wrong in pieces did not go wrong before
            if not is_out_of_memory(error):
                self._refuse(f"in pieces it fails: {type(error).__name__}: {error}"[:200], failure)
            forget(error)
        if hasattr(failure, "add_note"):
            failure.add_note("".join(told))
        return None

    def _undone(self, args: Any, kwargs: Any, noted: Noted, failure: BaseException) -> Tuple[int, Any]:
        assert self._traces is not None
        forget(failure)
        self._traces.undo()
        if self._versions(args, kwargs) != noted.versions:
            raise CannotSplit("it changes its inputs in place")
        give_back()
        size = self.size(args, kwargs)
        if size is None:
            raise CannotSplit("its inputs have no rows")
        self.shrunk(size, size[0])
        return size

    def shrunk(self, size: Tuple[int, Any], failed_rows: int) -> int:
        """How many rows a piece may have by now."""
        rows, tail = size
        if self.pieces.did_not_fit(failed_rows, tail, 1) is None:
            raise CannotSplit("one row at a time does not fit" if self.pieces.least == 1 else "two rows do not fit")
        k = self.pieces.count(rows, tail)
        self._rescue.recorder.event("rescue.k", k=k, where="train")
        return max(self.pieces.least, min(failed_rows - 1, -(-rows // k)))

    def _refuse(self, reason: str, error: Optional[BaseException] = None) -> None:
        self.refused = self.refused or reason
        words = wanted(error) if error is not None else ""
        self._rescue.say("rescue.refused", reason=reason, where="train", wanted=words)

    # -- in pieces

    def _in_pieces(self, module: Any, args: Any, kwargs: Any, size: Tuple[int, Any]) -> Any:
        rows, tail = size
        call = self.prepared(module, args, kwargs, size)
        assert self._effects is not None
        k = self.pieces.count(rows, tail)
        result = call.forward(bounds(rows, k), self._effects)
        before = self.pieces.count(rows, tail)
        now = self.pieces.fitted(rows, tail, before)
        if now != before:
            self._rescue.recorder.event("rescue.k", k=now, where="train")
        self.disclose(call)
        return result

    def prepared(self, module: Any, args: Any, kwargs: Any, size: Tuple[int, Any]) -> Call:
        """A call that may be run in pieces; or CannotSplit."""
        if self._traces is None:
            self._traces = Traces(self._torch, module)
        if self._effects is None:
            self._effects = Effects(self._torch, self._traces)
        if self._trial is None:
            reason = unfit.why_not(module, self._torch)  # hooks may have come since
            if reason:
                raise CannotSplit(reason)
            self._trial = Trial(self._torch)
        call = Call(self._original, module, args, kwargs, size[0], self._traces)
        call.least = self.pieces.least

        def shrink(failed_rows: int) -> int:
            return self.shrunk(size, failed_rows)

        call.shrink = shrink
        few = -(-size[0] // self.pieces.count(*size))
        self._trial.settle(call, few)
        return call

    def size(self, args: Any, kwargs: Any) -> Optional[Tuple[int, Any]]:
        """Rows, and the shape of a row; None where there are none."""
        tensors = [t for t in tensors_of((args, kwargs), self._torch) if t.dim()]
        if not tensors:
            return None
        rows = int(tensors[0].shape[0])
        tail = tuple(tuple(t.shape[1:]) for t in tensors if t.shape[0] == rows)
        return (rows, tail) if rows > 1 else None

    @guarded
    def disclose(self, call: Call, drawn_anew: bool = False) -> None:
        assert self._effects is not None
        for text in self._effects.texts():
            self._rescue.say("rescue.disclosed", text=text)
        if drawn_anew:
            self._rescue.say(
                "rescue.disclosed", text="where memory ran out in a backward pass, dropout was drawn anew for it"
            )
        if call.left_out:
            self._rescue.say("rescue.disclosed", text="the cache for generating that it returns is left out")
