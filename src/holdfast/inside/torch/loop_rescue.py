"""Out of memory on torch: the outermost call of a module is run in pieces, the script stays as it is.

`whole` is the module's own call and all that happens where memory is enough. Where it is not, what the failed call
changed is put back, a few rows are tried as one piece and as two, and the same call is run in pieces (`recompute`). For
trainers and `holdfast.backward` the call is that of the function which computes the loss (`batch_function`).
"""

from __future__ import annotations

import contextlib
import os
import resource
import weakref
from typing import Any, Callable, List, Optional, Tuple

from ..never_raise import guarded
from ..out_of_memory import forget, give_back, is_out_of_memory, tell_caught, wanted
from ..piece_sizes import PiecesByLength, bounds
from ..rescue_engine import CannotSplit, attempted
from ..telemetry import Recorder, now
from . import among_ranks, not_splittable, seams
from .batch_function import BatchFunction
from .failed_backward import Backward, Noted, Record
from .foresight import DoesNotFit, Saved, can_watch, rows_that_fit
from .outermost_call import here, left_alone
from .piece_state import autocasts
from .recompute import Call
from .split_effects import Effects
from .split_trial import Trial
from .step_undo import StepUndo
from .tensor_nests import mapped, tensors_of

WATCHED = 4  # calls of each size whose memory is watched: an optimizer makes its state after the first
QUICK_S = 0.005  # noting a call takes up to 0.07 ms
FEW_ROWS, _nothing = 4, contextlib.nullcontext()
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


class LoopRescue:
    """For every module of this process."""

    def __init__(self, recorder: Recorder, torch: Any, original: Callable[..., Any]) -> None:
        self.recorder, self.torch, self.original = recorder, torch, original
        self.known: dict[int, RescuedModule] = {}
        self._said: set[str] = set()
        self.backward = Backward(self)
        self.forked = False  # a forked child is somebody else's: a loader's worker mostly
        os.register_at_fork(after_in_child=self._in_child)
        self.next_number = seams.next_node_number(torch)
        self._limited: bool = any(resource.getrlimit(kind)[0] != resource.RLIM_INFINITY for kind in LIMITS)
        self.settings: dict[str, Any] = recorder.settings.get("rescue") or {}
        self.groups = recorder.settings.get("groups")
        self._gpu_in_use: Callable[[], bool] = torch.cuda.is_initialized
        on_host = not self._limited and not any(getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu"))
        self.errors_possible: Callable[[], bool] = bool if on_host else self._may_be_errors  # of memory; `bool` says no

    def _in_child(self) -> None:
        self.forked = True

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """In training mode, with gradients, and not within another one that is looked after."""
        known = self.known.get(id(module))
        if known is None or known.module() is not module:
            known = self._meet(module)
        if known is None or known.is_empty:
            return self.original(module, *args, **kwargs)
        here.inside = True
        here.calls.append((module, args, kwargs))
        try:
            usual = known.usual
            if usual is not None and args and getattr(args[0], "shape", None) == usual and not self.errors_possible():
                return self.original(module, *args, **kwargs)
            return known.run(BatchFunction(module, self.original), args, kwargs)
        finally:
            here.inside = False

    def takes_hold(self, model: Any) -> bool:
        return bool(model.training and not here.inside and self.torch.is_grad_enabled() and not self.forked)

    def run(self, known: Optional[RescuedModule], function: BatchFunction, args: Any, kwargs: Any) -> Any:
        """Of a trainer. Where it is refused, calls of its modules may still be run in pieces."""
        here.calls.append((function, args, kwargs))
        if known is None or known.is_empty or known.refused:
            try:
                return function.whole(*args, **kwargs)
            except (MemoryError, RuntimeError) as error:
                if known is not None and is_out_of_memory(error):
                    known.refuse(known.refused, error)
                raise
        with left_alone():
            return known.run(function, args, kwargs)

    def _may_be_errors(self) -> bool:
        return self._limited or self._gpu_in_use()

    @guarded
    def _meet(self, module: Any) -> Optional[RescuedModule]:
        """None where nothing is trained so far."""
        parameters = list(module.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            return None
        key = id(module)
        known = self.known[key] = RescuedModule(self, BatchFunction(module, self.original))
        weakref.finalize(module, self.known.pop, key, None)
        return known

    def say(self, kind: str, **data: object) -> None:
        """Once."""
        text = f"{kind} {data}"
        if text not in self._said:
            self._said.add(text)
            self.recorder.event(kind, **data)


_process: List[LoopRescue] = []  # one at most


def of_process(recorder: Recorder, torch: Any) -> LoopRescue:
    if not _process:
        _process.append(LoopRescue(recorder, torch, torch.nn.Module.__call__))
    return _process[0]


class RescuedModule:
    """One module, or one function of a trainer's, whose call is the outermost one."""

    def __init__(self, rescue: LoopRescue, function: BatchFunction, refused: str = "") -> None:
        torch, recorder, module = rescue.torch, rescue.recorder, function.model
        self.module = weakref.ref(module)
        self.is_empty = next(iter(module.parameters()), None) is None or not_splittable.hands_on(module)  # a loss, say
        self._rescue, self._torch, self._is_module = rescue, torch, function.is_module
        self.refused = refused or not_splittable.why_not(module, torch, function.is_module)
        self._traces: Optional[StepUndo] = None
        self._effects: Optional[Effects] = None
        self._trial: Optional[Trial] = None
        self._on_cpu = all(parameter.device.type == "cpu" for parameter in module.parameters())
        least = 2 if not_splittable.normalises(module, torch) else 1
        k = int(rescue.settings.get("k") or 1)
        self.pieces = PiecesByLength(k, least=least, tries=k == 1 or not self._on_cpu)
        self._calls: dict[Any, int] = {}  # by the shape of what they were given
        self._is_new, self._began = True, 0.0  # the last call
        self._can_watch = self._on_cpu and can_watch(torch, module)
        self._largest = self._watches = self._told_k = 0
        self.usual: Any = None  # the shape of a first argument for which there is nothing to do but to call
        if not self.refused and not self.is_empty:
            recorder.phase("train")  # a kill in the very first step is known to have begun
            if self._on_cpu or not function.is_module:
                rescue.say("rescue.ready", k=k)

    def run(self, function: BatchFunction, args: Any, kwargs: Any) -> Any:
        if not self.pieces.whole and not self.refused:
            size = self.size(args, kwargs)
            if size is not None and self.pieces.count(*size) > 1:
                done = self._begun_in_pieces(function, args, kwargs, size)
                if done is not None:
                    return done[0]
        left = self.refused or self._is_usual(function, args, kwargs) or seams.is_transformed(self._torch)
        noted = None if left else self._note(function, args, kwargs)
        try:
            with _nothing if noted is None or noted.watched is None else noted.watched.watching():
                found = function.whole(*args, **kwargs)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            tell_caught(self._rescue.recorder, "train", 1, error)
            if noted is None:
                self.refuse(self.refused or "it fitted before, and what it changes was not noted", error)
                raise
            failure: BaseException = error
        except DoesNotFit as error:
            failure = error
        else:
            if noted is not None:
                after = self._rescue.next_number()
                self._rescue.backward.follow(Record(self, function, noted, after), function.followed(found))
            return found
        assert noted is not None
        return self._rescued(function, noted, failure)

    # -- the usual path

    def _is_usual(self, function: BatchFunction, args: Any, kwargs: Any) -> bool:
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
        if self._rescue.errors_possible() or not function.is_module:
            return self._began - began < QUICK_S
        if first is not None and self.pieces.whole:
            self.usual = getattr(first, "shape", None)
        return True

    @guarded
    def _note(self, function: BatchFunction, args: Any, kwargs: Any) -> Optional[Noted]:
        torch = self._torch
        if self._traces is None or (self._is_new and not self._traces.are_of(function.model)):
            self._look_again(function.model)
        assert self._traces is not None
        self._traces.note()
        args, kwargs = mapped((args, kwargs), lambda leaf: leaf)
        inputs = tensors_of((args, kwargs), torch)
        return Noted(
            args, kwargs, inputs, self._traces.random, self._versions(inputs), self._rescue.next_number(), autocasts(torch),
            self._is_new, among_ranks.sent(torch), self._watched(inputs) if self._can_watch else None,
        )  # fmt: skip

    def _look_again(self, model: Any) -> None:
        """At its parameters and statistics: it may have been moved or changed."""
        self._traces = StepUndo(self._torch, model)
        self._effects = Effects(self._torch, self._traces)

    def _watched(self, inputs: List[Any]) -> Optional[Saved]:
        """While calls get larger, and the first few of the largest."""
        groups = self._rescue.groups
        if groups is None:
            return None
        volume = sum(tensor.numel() for tensor in inputs)
        if volume > self._largest:
            self._largest, self._watches = volume, 0
        self._watches += 1
        if volume < self._largest or self._watches > WATCHED:
            return None
        return Saved(self._torch, groups, self.parameters())

    def _versions(self, inputs: List[Any]) -> List[int]:
        return [seams.version_of(tensor) for tensor in (*inputs, *self.parameters())]

    def parameters(self) -> List[Any]:
        assert self._traces is not None
        return self._traces.parameters

    # -- after a failure

    def _rescued(self, function: BatchFunction, noted: Noted, failure: BaseException) -> Any:
        done = self._again(function, noted, failure)
        if done is not None:
            return done[0]
        if isinstance(failure, DoesNotFit) or not self._is_module:
            with left_alone(self._is_module):  # of a trainer's function the modules' calls are what is left to be cut
                return function.whole(*noted.args, **noted.kwargs)
        raise failure

    def _again(self, function: BatchFunction, noted: Noted, failure: BaseException) -> Optional[Tuple[Any]]:
        """None where it cannot be done."""
        args, kwargs = noted.args, noted.kwargs

        def in_pieces() -> Tuple[Any]:
            size = self._undone(function, noted, failure)
            if isinstance(failure, DoesNotFit):
                self._foreseen(function, args, kwargs, size, failure)
            return (self._in_pieces(function, args, kwargs, size),)

        return attempted(in_pieces, failure, self.refuse)

    def put_back(self) -> None:
        """What the last call that was noted changed; once."""
        if self._traces is not None:
            self._traces.undo()

    def _undone(self, function: BatchFunction, noted: Noted, failure: BaseException) -> Tuple[int, Any]:
        forget(failure)
        function.failed()
        self.put_back()
        if among_ranks.sent(self._torch) != noted.sent:
            raise CannotSplit(among_ranks.TALKS)
        if self._versions(noted.inputs) != noted.versions:
            raise CannotSplit("it changes its inputs in place")
        give_back()
        size = self.size(noted.args, noted.kwargs)
        if size is None:
            raise CannotSplit("its inputs do not share a first axis, or have one row")
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

    def refuse(self, reason: str, error: Optional[BaseException] = None) -> None:
        self.refused = self.refused or reason
        words = wanted(error) if error is not None else ""
        self._rescue.say("rescue.refused", reason=reason, where="train", wanted=words)

    # -- before memory runs out

    def _foreseen(
        self, function: BatchFunction, args: Any, kwargs: Any, size: Tuple[int, Any], found: DoesNotFit
    ) -> None:
        recorder, (rows, tail) = self._rescue.recorder, size
        self._measure(function, args, kwargs, size, -(-rows // 2))
        recorder.event(
            "rescue.foreseen", where="train", rows=rows, k=self.pieces.count(rows, tail), of=found.room.of,
            step=recorder.steps + 1, left_bytes=found.room.bytes, needed_bytes=found.needed,
        )  # fmt: skip
        self._tell_k(self.pieces.count(rows, tail))

    def _measure(self, function: BatchFunction, args: Any, kwargs: Any, size: Tuple[int, Any], at_most: int) -> None:
        """How many rows a piece may have; before that, whether it may be cut at all."""
        self.pieces.foreseen(size[1], max(self.pieces.least, min(FEW_ROWS, at_most)))
        call = self.prepared(function, args, kwargs, size)
        give_back()
        fit = rows_that_fit(self._torch, call, self._rescue.groups, at_most)
        self.pieces.foreseen(size[1], fit)

    def _begun_in_pieces(
        self, function: BatchFunction, args: Any, kwargs: Any, size: Tuple[int, Any]
    ) -> Optional[Tuple[Any]]:
        """None where it cannot be done."""
        rows, tail = size

        def in_pieces() -> Tuple[Any]:
            if self._on_cpu and not self.pieces.knows(tail) and self._rescue.groups is not None:
                self._measure(function, args, kwargs, size, -(-rows // self.pieces.count(rows, tail)))
                self._tell_k(self.pieces.count(rows, tail))
            return (self._in_pieces(function, args, kwargs, size),)

        return attempted(in_pieces, None, self.refuse)  # whole, it says for itself what is wrong

    def _tell_k(self, k: int) -> None:
        self._told_k = k
        self._rescue.recorder.cut(k, "train")

    # -- in pieces

    def _in_pieces(self, function: BatchFunction, args: Any, kwargs: Any, size: Tuple[int, Any]) -> Any:
        rows, tail = size
        call = self.prepared(function, args, kwargs, size)
        assert self._effects is not None
        k = self.pieces.count(rows, tail)
        result = call.forward(bounds(rows, k), self._effects)
        before = self.pieces.count(rows, tail)
        now = self.pieces.fitted(rows, tail, before)
        if (
            now != before or not self._told_k
        ):  # one handed on, too, once it has proved itself: the next run begins with it
            self._tell_k(now)
        result = function.joined(result, call)
        self.disclose(call)
        return result

    def prepared(self, function: BatchFunction, args: Any, kwargs: Any, size: Tuple[int, Any]) -> Call:
        """A call that may be run in pieces; or CannotSplit."""
        if self._traces is None or not self._traces.are_of(function.model):
            self._look_again(function.model)
        assert self._traces is not None
        if self._trial is None:
            reason = not_splittable.why_not(
                function.model, self._torch, function.is_module
            )  # hooks may have come since
            if reason:
                raise CannotSplit(reason)
            self._trial = Trial(self._torch)
        call = Call(function, args, kwargs, size[0], self._traces)
        call.least = self.pieces.least

        def shrink(failed_rows: int) -> int:
            return self.shrunk(size, failed_rows)

        call.shrink, call.refuse = shrink, self.refuse
        few = -(-size[0] // self.pieces.count(*size))
        self._trial.settle(call, few)
        return call

    def size(self, args: Any, kwargs: Any) -> Optional[Tuple[int, Any]]:
        """Rows, and the shape of a row; None where there are none."""
        tensors = [t for t in tensors_of((args, kwargs), self._torch) if t.dim()]
        if not tensors or (not self._is_module and len({t.shape[0] for t in tensors}) > 1):
            return None
        rows = int(tensors[0].shape[0])
        tail = tuple(tuple(t.shape[1:]) for t in tensors if t.shape[0] == rows)
        return (rows, tail) if rows > 1 else None

    @guarded
    def disclose(self, call: Call, drawn_anew: bool = False) -> None:
        assert self._effects is not None
        for text in [*(self._effects.texts() if self._effects.looked else ()), *call.disclosed]:
            self._rescue.say("rescue.disclosed", text=text)
        if drawn_anew:
            text = "where memory ran out in a backward pass, dropout was drawn anew for its gradient"
            self._rescue.say("rescue.disclosed", text=text)
        if call.left_out:
            self._rescue.say("rescue.disclosed", text="the cache for generating that it returns is left out")


def _shapes(args: Any, kwargs: Any, torch: Any) -> Tuple[Any, ...]:
    return tuple(tuple(tensor.shape) for tensor in tensors_of((args, kwargs), torch))
