"""A function under torch.compile that holds a whole step: forward pass, backward pass and update.

The compiler leaves nothing of what hangs on those calls, and more in the graph would be another graph. So such a function is
known by the names its code has, and looked at from outside, when a call of it is over: that was a step, and the loss is what
it returns. What would have to reach into it is said to be missing, once.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

from ..never_raise import guarded
from ..user_errors import show_without_ours
from .numerics.hooks import Looks
from .step import compiling
from .telemetry import Telemetry
from .tensor_nests import tensors_of

CALLS = frozenset({"backward", "step"})  # of a loss, and of an optimizer
COMPARED = 64  # entries of a weight
REASON = "forward pass, backward pass and update are one function under torch.compile ({name})"


def take_over(torch: Any, telemetry: Telemetry, looks: Optional[Looks]) -> None:
    original = getattr(torch, "compile", None)
    if original is None:
        return
    is_compiling, watched = compiling(torch), guarded(functools.partial(_watched, torch, telemetry, looks))

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        try:
            made = original(*args, **kwargs)
        except BaseException as error:
            show_without_ours(error)
            raise
        function = args[0] if args else kwargs.get("model")
        if is_compiling() or not is_whole_step(function):
            return made
        return watched(function, made) or made

    torch.compile = compile


def is_whole_step(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and set(code.co_names) >= CALLS


def _watched(torch: Any, telemetry: Telemetry, looks: Optional[Looks], function: Any, compiled: Any) -> Any:
    steps, is_compiling, recorder = (
        CompiledSteps(torch, telemetry, looks, function),
        compiling(torch),
        telemetry.recorder,
    )
    begins, over = guarded(steps.begins), guarded(steps.over)

    @functools.wraps(compiled)
    def step(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return compiled(*args, **kwargs)
        counted = recorder.steps
        try:
            begins()
            result = compiled(*args, **kwargs)
        except BaseException as error:
            show_without_ours(error)
            raise
        if recorder.steps == counted:  # not run as it is written after all
            over(result)
        return result

    return step


class CompiledSteps:
    """Of one function."""

    def __init__(self, torch: Any, telemetry: Telemetry, looks: Optional[Looks], function: Any) -> None:
        self._torch, self._telemetry, self._looks = torch, telemetry, looks
        self._function = function
        self._name = getattr(function, "__name__", "?")
        self._weight: Callable[[], Any] = lambda: None
        self._stand: Any = None
        self._before: Any = None
        self._is_told = False

    def begins(self) -> None:
        self._telemetry.begins("compiled step")
        weight = self._weight()
        if weight is None:
            weight = next((p for optimizer in self._optimizers() for p in _weights(optimizer) if p.is_cpu), None)
            self._weight = weakref.ref(weight) if weight is not None else self._weight
        self._before = _entries(weight)

    def over(self, result: Any) -> None:
        weight = self._weight()
        if weight is not None and self._torch.equal(_entries(weight), self._before):
            return  # gradients add up, and no update was made
        losses = [
            value for value in tensors_of(result, self._torch) if value.numel() == 1 and value.is_floating_point()
        ]
        loss = losses[0].detach() if losses else None
        shown = weight if weight is not None else loss
        if shown is None:
            shown = self._torch.empty(1)
        if self._stand is None:
            self._stand = _Stand()
        self._stand.param_groups[0]["params"] = [shown]
        if not self._is_told:
            self._is_told = True
            reason = REASON.format(name=self._name)
            self._telemetry.recorder.event("step.not_seen", reason=reason, loss=loss is not None)
        here = self._telemetry.loops.here
        if loss is not None and self._telemetry.loss_due:
            here.loss = loss
        self._telemetry.before(self._stand)
        self._telemetry.after(self._stand)
        if loss is not None and self._looks is not None:
            self._looks.loss_of_compiled_step(loss)

    def _optimizers(self) -> Iterator[Any]:
        kind = self._torch.optim.Optimizer
        for value in _reachable(self._function):
            if isinstance(value, kind):
                yield value


class _Stand:
    """Where an optimizer is asked for."""

    def __init__(self) -> None:
        self.param_groups: List[Dict[str, Any]] = [{"params": []}]
        self.state: Dict[Any, Any] = {}


def _reachable(function: Any) -> Iterator[Any]:
    """What its names stand for: variables of its module and of the functions around it, attributes of its object."""
    owner, plain = getattr(function, "__self__", None), getattr(function, "__func__", function)
    yield from (plain.__globals__.get(name) for name in plain.__code__.co_names)
    for cell in plain.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from list(vars(owner).values()) if hasattr(owner, "__dict__") else ()


def _weights(optimizer: Any) -> List[Any]:
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad and p.numel()][::-1]


def _entries(weight: Any) -> Any:
    return weight.detach().reshape(-1)[:COMPARED].clone() if weight is not None else None
