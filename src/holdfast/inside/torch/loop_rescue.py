"""Out of memory in loops people write: the outermost call of a module is run in pieces, the script stays as it is.

`whole` is the module's own call and all that happens where memory is enough. Where it is not, what the failed call
changed is put back, a few rows are tried as one piece and as two, and the same call is run in pieces (`recompute`).
"""

from __future__ import annotations

import contextlib
import resource
import traceback
import weakref
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from ..never_raise import guarded, unseen
from ..out_of_memory import forget, give_back, is_out_of_memory, tell_caught, wanted
from ..piece_sizes import Pieces, bounds
from ..rescue_engine import CannotSplit
from ..telemetry import Recorder, now
from . import not_splittable
from .failed_backward import Backward, Record
from .foresight import DoesNotFit, Saved, rows_that_fit
from .outermost_call import here
from .piece_state import autocasts, casting
from .recompute import Call
from .split_effects import Effects
from .split_trial import Trial
from .step_undo import StepUndo
from .tensor_nests import tensors_of

WATCHED = 4  # calls of each size whose memory is watched: an optimizer makes its state after the first
QUICK_S = 0.005  # noting a call takes up to 0.07 ms
FEW_ROWS = 4
_nothing = contextlib.nullcontext()
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


class Noted(NamedTuple):
    """Of a call that is about to be made whole."""

    inputs: List[Any]  # tensors
    random: List[Any]
    versions: List[int]  # of its inputs and parameters
    number: int  # of the next node in autograd's graph
    autocasts: List[Tuple[str, bool, Any]]
    is_new: bool  # a size that did not go through often so far
    watched: Optional[Saved] = None

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
        self._limited: bool = any(resource.getrlimit(kind)[0] != resource.RLIM_INFINITY for kind in LIMITS)
        self._gpu_in_use: Callable[[], bool] = torch.cuda.is_initialized

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """In training mode, with gradients, and not within another one that is looked after."""
        known = self._known.get(id(module))
        if known is None or known.module() is not module:
            known = self._meet(module)
        if known is None or known.is_empty:
            return self.original(module, *args, **kwargs)
        here.inside = True
        try:
            usual = known.usual
            if usual is not None and args and getattr(args[0], "shape", None) == usual and not self.errors_possible():
                return self.original(module, *args, **kwargs)
            return known.run(module, args, kwargs)
        except BaseException as error:
            if getattr(error, "_holdfast_forgotten", False):
                error.__traceback__ = None  # it held what had to be freed; it is in its notes
            else:
                unseen(error)
            raise
        finally:
            here.inside = False

    def errors_possible(self) -> bool:
        """Whether running out of memory is an error, at any time."""
        return self._limited or self._gpu_in_use()

    @guarded
    def _meet(self, module: Any) -> Optional[Outermost]:
        """None where nothing is trained so far."""
        parameters = list(module.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
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
        self.is_empty = next(iter(module.parameters()), None) is None  # a loss, say
        self._rescue, self._torch, self._original = rescue, torch, rescue.original
        self.refused = not_splittable.why_not(module, torch)
        self._traces: Optional[StepUndo] = None
        self._effects: Optional[Effects] = None
        self._trial: Optional[Trial] = None
        self._on_cpu = all(parameter.device.type == "cpu" for parameter in module.parameters())
        least = 2 if not_splittable.normalises(module, torch) else 1
        self.pieces = Pieces(rescue.k, least=least, tries=rescue.k == 1 or not self._on_cpu)
        self._calls: dict[Any, int] = {}  # by the shape of what they were given
        self._is_new = True
        self._began = 0.0  # the last call
        self._largest = self._watches = 0
        self.usual: Any = None  # the shape of a first argument for which there is nothing to do but to call
        if not self.refused and not self.is_empty:
            recorder.phase("train")  # a kill in the very first step is known to have begun
            if self._on_cpu:
                rescue.say("rescue.ready", k=rescue.k)

    def run(self, module: Any, args: Any, kwargs: Any) -> Any:
        if not self.pieces.whole and not self.refused:
            size = self.size(args, kwargs)
            if size is not None and self.pieces.count(*size) > 1:
                done = self._begun_in_pieces(module, args, kwargs, size)
                if done is not None:
                    return done[0]
        noted = None if self.refused or self._is_usual(args, kwargs) else self._note(module, args, kwargs)
        try:
            with _nothing if noted is None or noted.watched is None else noted.watched.watching():
                found = self._original(module, *args, **kwargs)
        except (MemoryError, RuntimeError) as error:
            unseen(error)
            if not is_out_of_memory(error):
                raise
            tell_caught(self._rescue.recorder, "train", 1, error)
            if noted is None:
                self._refuse(self.refused or "it fitted before, and what it changes was not noted", error)
                raise
            failure: BaseException = error
        except DoesNotFit as error:
            failure = error
        else:
            if noted is not None:
                after = self._rescue.next_number()
                self._rescue.backward.follow(Record(self, module, args, kwargs, noted, after), found)
            return found
        assert noted is not None
        return self._rescued(module, args, kwargs, noted, failure)

    # -- the usual path

    def _is_usual(self, args: Any, kwargs: Any) -> bool:
        """Nothing is to be noted: of a size that went through before on the CPU, where running out is no error, and of quick
        steps anywhere, in which noting would be felt and which are not the ones that fill a card."""
        first = args[0] if args else None
        key = getattr(first, "shape", None) or _shapes(args, kwargs, self._torch)
        calls = self._calls.get(key, 0)
        self._calls[key] = calls + 1
        self._is_new = calls < WATCHED
        began, self._began = self._began, now()
        if self._is_new:
            return False
        if self._rescue.errors_possible():
            return self._began - began < QUICK_S
        if first is not None and self.pieces.whole:
            self.usual = getattr(first, "shape", None)
        return True

    @guarded
    def _note(self, module: Any, args: Any, kwargs: Any) -> Optional[Noted]:
        torch = self._torch
        if self._traces is None:
            self._traces = StepUndo(torch, module)
        self._traces.note(gradients=False)
        inputs = tensors_of((args, kwargs), torch)
        return Noted(
            inputs, self._traces.random, self._versions(inputs), self._rescue.next_number(), autocasts(torch),
            self._is_new, self._watched(inputs) if self._on_cpu else None,
        )  # fmt: skip

    def _watched(self, inputs: List[Any]) -> Optional[Saved]:
        """While calls get larger, and the first few of the largest."""
        groups = self._rescue.settings.get("groups")
        if groups is None or not hasattr(self._torch.autograd.graph, "saved_tensors_hooks"):
            return None
        volume = sum(tensor.numel() for tensor in inputs)
        if volume > self._largest:
            self._largest, self._watches = volume, 0
        self._watches += 1
        if volume < self._largest or self._watches > WATCHED:
            return None
        return Saved(self._torch, groups, self.parameters())

    def _versions(self, inputs: List[Any]) -> List[int]:
        return [tensor._version for tensor in inputs] + [parameter._version for parameter in self.parameters()]

    def parameters(self) -> List[Any]:
        assert self._traces is not None
        return self._traces.parameters

    # -- after a failure

    def _rescued(self, module: Any, args: Any, kwargs: Any, noted: Noted, failure: BaseException) -> Any:
        done = self._again(module, args, kwargs, noted, failure)
        if done is not None:
            return done[0]
        if isinstance(failure, DoesNotFit):  # nothing has failed so far
            return self._original(module, *args, **kwargs)
        failure._holdfast_forgotten = True  # type: ignore[attr-defined]
        raise failure

    def _again(self, module: Any, args: Any, kwargs: Any, noted: Noted, failure: BaseException) -> Optional[Tuple[Any]]:
        """None where it cannot be done."""
        told = traceback.format_exception(type(failure), failure, failure.__traceback__)
        try:
            size = self._undone(args, kwargs, noted, failure)
            if isinstance(failure, DoesNotFit):
                self._foreseen(module, args, kwargs, size, failure)
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
        if self._versions(noted.inputs) != noted.versions:
            raise CannotSplit("it changes its inputs in place")
        give_back()
        size = self.size(args, kwargs)
        if size is None:
            raise CannotSplit("its inputs have no rows")
        if not isinstance(failure, DoesNotFit):
            self.shrunk(size, size[0])
        return size

    def shrunk(self, size: Tuple[int, Any], failed_rows: int) -> int:
        """How many rows a piece may have by now."""
        rows, tail = size
        if self.pieces.did_not_fit(rows, tail, -(-rows // failed_rows)) is None:
            raise CannotSplit("one row at a time does not fit" if self.pieces.least == 1 else "two rows do not fit")
        k = self.pieces.count(rows, tail)
        self._tell_k(k)
        return max(self.pieces.least, min(failed_rows - 1, -(-rows // k)))

    def _refuse(self, reason: str, error: Optional[BaseException] = None) -> None:
        self.refused = self.refused or reason
        words = wanted(error) if error is not None else ""
        self._rescue.say("rescue.refused", reason=reason, where="train", wanted=words)

    # -- before memory runs out

    def _foreseen(self, module: Any, args: Any, kwargs: Any, size: Tuple[int, Any], found: DoesNotFit) -> None:
        recorder, (rows, tail) = self._rescue.recorder, size
        self._measure(module, args, kwargs, size, -(-rows // 2))
        recorder.event(
            "rescue.foreseen", where="train", rows=rows, k=self.pieces.count(rows, tail), of=found.room.of,
            step=recorder.steps + 1, left_bytes=found.room.bytes, needed_bytes=found.needed,
        )  # fmt: skip
        self._tell_k(self.pieces.count(rows, tail))

    def _measure(self, module: Any, args: Any, kwargs: Any, size: Tuple[int, Any], at_most: int) -> None:
        """How many rows a piece may have; before that, whether it may be cut at all."""
        self.pieces.foreseen(size[1], max(self.pieces.least, min(FEW_ROWS, at_most)))
        call = self.prepared(module, args, kwargs, size)
        give_back()
        fit = rows_that_fit(self._torch, call, self._rescue.settings.get("groups"), at_most)
        self.pieces.foreseen(size[1], fit)

    def _begun_in_pieces(self, module: Any, args: Any, kwargs: Any, size: Tuple[int, Any]) -> Optional[Tuple[Any]]:
        """None where it cannot be done."""
        rows, tail = size
        try:
            if self._on_cpu and not self.pieces.knows(tail) and self._rescue.settings.get("groups") is not None:
                self._measure(module, args, kwargs, size, -(-rows // self.pieces.count(rows, tail)))
                self._tell_k(self.pieces.count(rows, tail))
            return (self._in_pieces(module, args, kwargs, size),)
        except CannotSplit as reason:
            self._refuse(str(reason))
            return None

    def _tell_k(self, k: int) -> None:
        self._rescue.recorder.event("rescue.k", k=k, where="train")

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
            self._tell_k(now)
        self.disclose(call)
        return result

    def prepared(self, module: Any, args: Any, kwargs: Any, size: Tuple[int, Any]) -> Call:
        """A call that may be run in pieces; or CannotSplit."""
        if self._traces is None:
            self._traces = StepUndo(self._torch, module)
        if self._effects is None:
            self._effects = Effects(self._torch, self._traces)
        if self._trial is None:
            reason = not_splittable.why_not(module, self._torch)  # hooks may have come since
            if reason:
                raise CannotSplit(reason)
            self._trial = Trial(self._torch)
        call = Call(self._original, module, args, kwargs, size[0], self._traces)
        call.least = self.pieces.least

        def shrink(failed_rows: int) -> int:
            return self.shrunk(size, failed_rows)

        call.shrink, call.refuse = shrink, self._refuse
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
        for text in self._effects.texts() if self._effects.looked else ():
            self._rescue.say("rescue.disclosed", text=text)
        if drawn_anew:
            text = "where memory ran out in a backward pass, dropout was drawn anew for its gradient"
            self._rescue.say("rescue.disclosed", text=text)
        if call.left_out:
            self._rescue.say("rescue.disclosed", text="the cache for generating that it returns is left out")


def _shapes(args: Any, kwargs: Any, torch: Any) -> Tuple[Any, ...]:
    return tuple(tuple(tensor.shape) for tensor in tensors_of((args, kwargs), torch))
