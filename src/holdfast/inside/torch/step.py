"""The training step of PyTorch, taken over in one place.

PyTorch has no step function: a loop of the user's asks a loader for a batch, runs backward, and lets an optimizer
update. Those calls together are the step here. An aspect (telemetry; later rescue, numerics, checkpoints) is a function
from a Step to a Step; they are composed once, and an aspect that is off is not in the list.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from ..never_raise import guarded, guarded_hook
from . import seams

Call = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """The calls a step is made of. An aspect that wraps one passes on its arguments, result and exceptions as they are."""

    iterate: Call  # a loader -> its iterator
    next_batch: Call  # an iterator -> a batch
    scale: Call  # a GradScaler, a loss -> the scaled loss
    backward: Call  # a tensor, …
    save: Call  # torch.save
    before_update: Call  # an optimizer: told, cannot change anything; what goes wrong there ends there
    after_update: Call


Aspect = Callable[[Step], Step]


def _nothing(_optimizer: Any) -> None:
    return None


def in_turn(first: Call, second: Call) -> Call:
    """Two that are told of an update."""
    if first is _nothing or second is _nothing:
        return second if first is _nothing else first

    def both(optimizer: Any) -> None:
        first(optimizer)
        second(optimizer)

    return both


def take_over(torch: Any, aspects: Sequence[Aspect]) -> None:
    """What this version of PyTorch does not have is left out."""
    if not aspects:
        return
    places = {
        "iterate": (getattr(seams.loader_module(), "DataLoader", None), "__iter__"),
        "next_batch": (seams.loader_iterator_class(), "__next__"),
        "scale": (seams.scaler_class(), "scale"),
        "backward": (torch.Tensor, "backward"),
        "save": (torch, "save"),
    }
    originals = {name: getattr(owner, attribute, _nothing) for name, (owner, attribute) in places.items()}
    step = Step(before_update=_nothing, after_update=_nothing, **originals)
    for aspect in aspects:
        step = aspect(step)
    _hook_updates(torch, step)
    missing = [name for name, original in originals.items() if original is _nothing]
    for name, (owner, attribute) in places.items():
        if name not in missing and getattr(step, name) is not originals[name]:
            _replace(owner, attribute, originals[name], getattr(step, name))


def _replace(owner: Any, attribute: str, original: Call, ours: Call) -> None:
    setattr(owner, attribute, functools.wraps(original)(ours))
    home = sys.modules.get(getattr(original, "__module__", ""))
    if home is not None and getattr(home, attribute, None) is original:  # torch.save lives in torch.serialization
        setattr(home, attribute, getattr(owner, attribute))


def _hook_updates(torch: Any, step: Step) -> None:
    """Through PyTorch's own global hooks. Where it compiles an optimizer, the hooks leave no trace in the graph."""
    before, after = step.before_update, step.after_update
    if before is _nothing and after is _nothing:
        return
    module: Any = sys.modules["torch.optim.optimizer"]
    if hasattr(module, "register_optimizer_step_pre_hook") and hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_pre_hook(guarded_hook(before, unless=compiling(torch)))
        module.register_optimizer_step_post_hook(guarded_hook(after, unless=compiling(torch)))
    else:
        _wrap_step_of_every_class(module.Optimizer, guarded(before), guarded(after))


def compiling(torch: Any) -> Callable[[], bool]:
    """True while the compiler reads our code, and then a constant to it. The cheapest one this version has."""
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None) or (lambda: False)


def _wrap_step_of_every_class(optimizer_class: Any, before: Call, after: Call) -> None:
    """PyTorch before 2.0: a class's `step` is wrapped when its first instance is made."""
    make = optimizer_class.__init__

    @functools.wraps(make)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        kind = type(self)
        original = kind.__dict__.get("step")
        if original is None or getattr(original, "_holdfast_wrapped", False):
            return

        @functools.wraps(original)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            before(self)
            result = original(self, *args, **kwargs)
            after(self)
            return result

        wrapped._holdfast_wrapped = True  # type: ignore[attr-defined]
        kind.step = wrapped

    optimizer_class.__init__ = init
