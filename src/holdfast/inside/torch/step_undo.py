"""What a call that fails has changed, and how it is put back: statistics of batch normalisation, which are small and
copied before each call that is noted, and random state, a few bytes."""

from __future__ import annotations

import contextlib
import sys
import weakref
from typing import Any, Iterator

from ..rescue_engine import CannotSplit
from . import seams
from .frozen_randomness import without_draws
from .piece_state import random_state, set_random_state


class StepUndo:
    """Of steps of one model."""

    def __init__(self, torch: Any, model: Any) -> None:
        self._torch = torch
        self._model = weakref.ref(model)  # what is known of a model is kept as long as it lives, and no longer
        self.parameters = list(model.parameters())
        kind = seams.norm_class(torch)
        self.normalising = [m for m in model.modules() if isinstance(m, kind) and m.running_mean is not None]
        self.statistics = self._statistics()
        self._copies = [buffer.detach().clone() for buffer in self.statistics]
        self._in_groups = _by_kind(self.statistics, self._copies)
        self.random: list[Any] = []

    def note(self) -> None:
        """Before each step: microseconds, and no wait for a device."""
        torch = self._torch
        self.random = random_state(torch)
        for statistics, copies in self._in_groups:
            copy_all(torch, statistics, copies)

    def _statistics(self) -> list[Any]:
        return [buffer for module in self.normalising for buffer in statistics_of(module).values()]

    def undo(self) -> None:
        """Once for each `note`."""
        if not self.random:  # nothing is noted
            return
        torch = self._torch
        random, self.random = self.random, []
        set_random_state(torch, random)
        model = self._model()
        if model is None or not self.are_of(model):
            raise CannotSplit("its parameters or statistics are others than before")
        for statistics, copies in self._in_groups:
            put_back(torch, copies, statistics)

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Whatever is run within."""
        random, before = random_state(self._torch), [buffer.detach().clone() for buffer in self.statistics]
        try:
            yield
        finally:
            set_random_state(self._torch, random)
            put_back(self._torch, before, self.statistics)

    def are_of(self, model: Any) -> bool:
        """As it is now: it may have been moved or changed."""
        now = list(model.parameters())
        return (
            len(now) == len(self.parameters)
            and all(a is b for a, b in zip(now, self.parameters))
            and all(a is b for a, b in zip(self._statistics(), self.statistics))
        )

    def random_state_moved(self) -> bool:
        return any(bool((a != b).any()) for a, b in zip(self.random, random_state(self._torch)))

    def other_buffers(self) -> dict[str, tuple[Any, int]]:
        model: Any = self._model()
        known = {id(buffer) for buffer in self.statistics}
        return {
            name: (buffer, seams.version_of(buffer))
            for name, buffer in model.named_buffers()
            if id(buffer) not in known
        }


@contextlib.contextmanager
def buffers_put_back(torch: Any, model: Any) -> Iterator[None]:
    """Those that a forward pass moves on beside statistics: spectral norms, buffers of one's own. They are copies for a while, since
    one that is written to may be saved in a graph."""
    kind = seams.norm_class(torch)
    held = [seams.buffers_of(module) for module in model.modules() if not isinstance(module, kind)]
    before = [(own, name, one) for own in held for name, one in own.items() if one is not None]
    copies = {id(one): one.detach().clone() for _, _, one in before}
    try:
        for own, name, one in before:
            own[name] = copies[id(one)]
        yield
    finally:
        for own, name, one in before:
            own[name] = one


def statistics_of(module: Any) -> dict[str, Any]:
    return {name: buffer for name, buffer in seams.buffers_of(module).items() if buffer is not None}


def _by_kind(buffers: list[Any], copies: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    """Tensors of one kind are copied by one call of the device."""
    groups: dict[Any, tuple[list[Any], list[Any]]] = {}
    for buffer, copy in zip(buffers, copies):
        ours, theirs = groups.setdefault((buffer.device, buffer.dtype), ([], []))
        ours.append(buffer)
        theirs.append(copy)
    return list(groups.values())


def copy_all(torch: Any, sources: list[Any], targets: list[Any]) -> None:
    with torch.no_grad():
        seams.copy_all(torch, sources, targets)


def put_back(torch: Any, copies: list[Any], statistics: list[Any]) -> None:
    """So that a graph of an earlier pass, which has them saved, does not take it for a change."""
    if not statistics:
        return
    with seams.versions_kept(torch, statistics):
        copy_all(torch, copies, statistics)


@contextlib.contextmanager
def aside(parameters: list[Any]) -> Iterator[None]:
    """Their gradients, for a while."""
    gradients = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient


@contextlib.contextmanager
def additions(parameters: list[Any]) -> Iterator[dict[int, int]]:
    """How often autograd adds to each within a backward pass: with checkpoints that enter it anew, more than once."""
    counts: dict[int, int] = {}

    def count(parameter: Any) -> None:
        counts[id(parameter)] = counts.get(id(parameter), 0) + 1

    # Before PyTorch 2.1 nothing tells; there, too, only checkpoints that enter the backward pass anew add twice.
    told = [parameter for parameter in parameters if hasattr(parameter, "register_post_accumulate_grad_hook")]
    hooks = [parameter.register_post_accumulate_grad_hook(count) for parameter in told]
    try:
        yield counts
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def shadowed(owner: Any, name: str, stand_in: Any) -> Iterator[None]:
    """An attribute of one object, for a while; past its `__setattr__`."""
    own = owner.__dict__
    had, before = name in own, own.get(name)
    own[name] = stand_in
    try:
        yield
    finally:
        if had:
            own[name] = before
        else:
            own.pop(name, None)


@contextlib.contextmanager
def without_chance(model: Any) -> Iterator[None]:
    """No draws, no statistics of a batch: those differ by themselves. A `train()` within does not change that."""
    states = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with without_draws(sys.modules["torch"]), contextlib.ExitStack() as stack:
            for module, _ in states:
                stack.enter_context(shadowed(module, "train", _stays(module)))
            yield
    finally:
        for module, training in states:
            module.training = training


def _stays(module: Any) -> Any:
    return lambda mode=True: module
