"""The training step of PyTorch, taken over in one place.

PyTorch has no step function: a loop of the user's asks a loader for a batch, runs backward, and lets an optimizer
update. Those calls together are the step here. An aspect (telemetry; later rescue, numerics, checkpoints) is a function
from a Step to a Step; they are composed once, and an aspect that is off is not in the list.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Optional, Protocol, Sequence, Tuple

from ..never_raise import guarded_hook
from ..user_errors import passing_on
from . import seams

Call = Callable[..., Any]
Hook = Callable[[Any, Any, Any], None]  # of an optimizer's step, as PyTorch calls it


@dataclass(frozen=True)
class Step:
    """The calls a step is made of. An aspect that wraps one passes on its arguments, result and exceptions as they are;
    our frames are taken off an error in one place, around all aspects."""

    iterate: Call  # a loader -> its iterator
    next_batch: Call  # an iterator -> a batch
    scale: Call  # a GradScaler, a loss -> the scaled loss
    backward: Call  # a tensor, …
    save: Call  # torch.save
    before_update: Tuple[
        Call, ...
    ]  # told an optimizer, in turn: cannot change anything; what goes wrong there ends there
    after_update: Tuple[Call, ...]


Aspect = Callable[[Step], Step]


class ShortCut(Protocol):
    """Of the usual step: around all aspects, and past them where none has anything to do."""

    def over(self, original: Step, layered: Step) -> Step: ...

    def updates(self, before: Hook, after: Hook) -> Tuple[Hook, Hook]: ...


def _nothing() -> None:
    return None


def take_over(torch: Any, aspects: Sequence[Aspect], shorten: Callable[[], Optional[ShortCut]]) -> None:
    """What this version of PyTorch does not have is left out. `shorten` is asked once the aspects are in place."""
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
    step = original = Step(before_update=(), after_update=(), **originals)
    for aspect in aspects:
        step = aspect(step)
    short = shorten()
    _hook_updates(torch, step, short)
    taken = [name for name, call in originals.items() if call not in (_nothing, getattr(step, name))]
    shown: Dict[str, Any] = {name: passing_on(getattr(step, name)) for name in taken}
    step = replace(step, **shown)
    step = short.over(original, step) if short is not None else step
    for name in taken:
        _replace(*places[name], originals[name], getattr(step, name))


def _replace(owner: Any, attribute: str, original: Call, ours: Call) -> None:
    setattr(owner, attribute, functools.wraps(original)(ours))
    home = sys.modules.get(getattr(original, "__module__", ""))
    if home is not None and getattr(home, attribute, None) is original:  # torch.save lives in torch.serialization
        setattr(home, attribute, getattr(owner, attribute))


def _hook_updates(torch: Any, step: Step, short: Optional[ShortCut]) -> None:
    """Through PyTorch's own global hooks. Where it compiles an optimizer, the hooks leave no trace in the graph."""
    if not step.before_update and not step.after_update:
        return
    before = guarded_hook(step.before_update, unless=compiling(torch))
    after = guarded_hook(step.after_update, unless=compiling(torch))
    if short is not None:
        before, after = short.updates(before, after)
    module: Any = sys.modules["torch.optim.optimizer"]
    if hasattr(module, "register_optimizer_step_pre_hook") and hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)
    else:
        _wrap_step_of_every_class(module.Optimizer, before, after)


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
            before(self, args, kwargs)
            result = original(self, *args, **kwargs)
            after(self, args, kwargs)
            return result

        wrapped._holdfast_wrapped = True  # type: ignore[attr-defined]
        kind.step = wrapped

    optimizer_class.__init__ = init
