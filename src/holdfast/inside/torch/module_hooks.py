"""Where the rescue of unedited loops takes hold: the call of a module, and the backward pass of a tensor."""

from __future__ import annotations

import functools
import os
import traceback
from dataclasses import replace
from typing import Any, List, Optional, Tuple

from ..never_raise import guarded, unseen
from ..out_of_memory import is_out_of_memory, tell_caught, wanted
from ..rescue_engine import CannotSplit
from ..telemetry import Recorder
from .loop_rescue import Unedited
from .outermost_call import here
from .step import Aspect, Call, Step, compiling


def rescuing(recorder: Recorder, torch: Any) -> Optional[Aspect]:
    """Takes over the modules' call at once; the backward pass as an aspect of the step. None where it is not to act."""
    if recorder.settings.get("policy") != "protect" or not isinstance(recorder.settings.get("rescue"), dict):
        return None
    rescue = Unedited(recorder, torch, torch.nn.Module.__call__)
    _take_over_calls(torch, rescue)
    return lambda step: replace(step, backward=_backward(rescue, step))


def _take_over_calls(torch: Any, rescue: Unedited) -> None:
    original, grad_enabled, is_compiling = rescue.original, torch.is_grad_enabled, compiling(torch)
    mine = _Mine()

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        try:
            if here.inside or not self.training or not grad_enabled() or mine.forked:
                return original(self, *args, **kwargs)
            return rescue.call(self, args, kwargs)
        except BaseException as error:
            unseen(error)
            raise

    torch.nn.Module.__call__ = functools.wraps(original)(__call__)


class _Mine:
    """A forked child is somebody else's: a loader's worker mostly."""

    def __init__(self) -> None:
        self.forked = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.forked = True


def _backward(rescue: Unedited, step: Step) -> Call:
    inner, is_compiling, passes = step.backward, compiling(rescue.torch), rescue.backward
    begins, ends = guarded(passes.begins), guarded(passes.ends)

    def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return inner(tensor, *args, **kwargs)
        marks = None if here.inside or not passes.any else begins(None if args or kwargs else tensor)
        try:
            result = inner(tensor, *args, **kwargs)
        except (MemoryError, RuntimeError) as error:
            unseen(error)
            if marks is None or not is_out_of_memory(error):
                raise
            failure = error
        except BaseException as error:
            unseen(error)
            raise
        else:
            if marks is not None:
                ends()
            return result
        try:
            if _again(rescue, tensor, args, kwargs, marks, failure):
                return None
            raise failure
        except BaseException as error:
            if error is failure:
                error.__traceback__ = None  # it held what had to be freed; it is in its notes
            raise

    return backward


def _again(
    rescue: Unedited, tensor: Any, args: Any, kwargs: Any, marks: List[Tuple[Any, Any]], failure: BaseException
) -> bool:
    """Whether the failed pass was done after all."""
    recorder = rescue.recorder
    tell_caught(recorder, "train", 1, failure)
    told = traceback.format_exception(type(failure), failure, failure.__traceback__)
    try:
        if args or any(value is not None and value is not False for value in kwargs.values()):
            raise CannotSplit("its backward pass keeps the graph, or is given gradients")
        rescue.backward.again(tensor, marks, failure)
        return True
    except CannotSplit as reason:
        rescue.say("rescue.refused", reason=str(reason), where="train", wanted=wanted(failure))
    except Exception as error:  # noqa: BLE001 - what goes wrong in pieces did not go wrong before
        if not is_out_of_memory(error):
            reason_of = f"in pieces it fails: {type(error).__name__}: {error}"[:200]
            rescue.say("rescue.refused", reason=reason_of, where="train", wanted=wanted(failure))
    if hasattr(failure, "add_note"):
        failure.add_note("".join(told))
    return False
