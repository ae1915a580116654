"""Where the rescue of unedited loops takes hold: the call of a module, and the backward pass of a tensor."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, List, Optional, Tuple

from ..never_raise import guarded
from ..out_of_memory import is_out_of_memory, tell_caught, wanted
from ..rescue_engine import CannotSplit, attempted
from ..settings import rescue_wanted
from ..telemetry import Recorder
from . import seams
from .loop_rescue import LoopRescue, of_process
from .outermost_call import here, left_alone
from .recompute import NONE
from .step import Aspect, Call, Step, compiling


def rescuing(recorder: Recorder, torch: Any) -> Optional[Aspect]:
    """Takes over the modules' call at once; the backward pass as an aspect of the step. None where it is not to act."""
    if not rescue_wanted(recorder.settings):
        return None
    rescue = of_process(recorder, torch)
    _take_over_calls(torch, rescue)
    return lambda step: replace(step, backward=_backward(rescue, step))


def _take_over_calls(torch: Any, rescue: LoopRescue) -> None:
    original, grad_enabled, is_compiling = rescue.original, torch.is_grad_enabled, compiling(torch)

    known_of = rescue.known

    def outermost(module: Any, args: Any, kwargs: Any) -> Any:
        if not module.training or not grad_enabled() or rescue.forked:
            return original(module, *args, **kwargs)
        known = known_of.get(id(module))
        if (  # as `rescue.call` does, which has nothing else to do then
            known is not None
            and known.usual is not None
            and args
            and getattr(args[0], "shape", None) == known.usual
            and known.module() is module
            and not rescue.errors_possible()
        ):
            here.calls.append((module, args, kwargs))
            here.inside = True
            try:
                return original(module, *args, **kwargs)
            finally:
                here.inside = False
        return rescue.call(module, args, kwargs)

    call = seams.taken_over_call(original, is_compiling, here, outermost)
    torch.nn.Module.__call__ = functools.wraps(original)(call)


def _backward(rescue: LoopRescue, step: Step) -> Call:
    inner, is_compiling, passes = step.backward, compiling(rescue.torch), rescue.backward

    def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return inner(tensor, *args, **kwargs)
        if here.inside or not passes.records:
            return inner(tensor, *args, **kwargs)
        return _followed(rescue, inner, tensor, args, kwargs)

    return backward


def rescued_backward(rescue: LoopRescue, tensor: Any) -> None:
    """Of calls that this rescue follows, wherever backward passes are taken over by another one, or not at all."""

    def inner(tensor: Any) -> Any:
        with left_alone():
            return tensor.backward()

    _followed(rescue, inner, tensor, (), {})


def _followed(rescue: LoopRescue, inner: Call, tensor: Any, args: Any, kwargs: Any) -> Any:
    passes = rescue.backward
    marks = guarded(passes.begins)(None if args or kwargs else tensor)
    try:
        result = inner(tensor, *args, **kwargs)
    except (MemoryError, RuntimeError) as error:
        if marks is None or not is_out_of_memory(error):
            raise
        failure = error
    else:
        if marks is not None:
            guarded(passes.ends)()
        return result
    if _again(rescue, tensor, args, kwargs, marks, failure):
        return None
    raise failure


def _again(
    rescue: LoopRescue, tensor: Any, args: Any, kwargs: Any, marks: List[Tuple[Any, Any]], failure: BaseException
) -> bool:
    """Whether the failed pass was done after all."""
    tell_caught(rescue.recorder, "train", 1, failure)

    def in_pieces() -> bool:
        if args or any(value is not None and value is not False for value in kwargs.values()):
            raise CannotSplit("its backward pass keeps the graph, or is given gradients")
        rescue.backward.again(tensor, marks, failure)
        return True

    def refuse(reason: str, error: Optional[BaseException]) -> None:
        rescue.say("rescue.refused", reason=reason, where="train", wanted=wanted(error or failure))

    if attempted(in_pieces, failure, refuse):
        return True
    for parameter, before in marks:
        if before == NONE:  # a part of a gradient is none
            parameter.grad = None
    return False
