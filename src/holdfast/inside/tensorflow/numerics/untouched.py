"""Running some of the user's model beside its training: nothing it assigns is kept, and nothing it draws is missed."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading
from typing import Any, Dict, Iterator, Tuple

from .. import random_state, seams
from ..nesting import nesting

SEED = 1_597_463_007
WRITES = ("assign", "assign_add", "assign_sub", "scatter_add", "scatter_sub", "scatter_update", "batch_scatter_update")


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Assignments to variables do nothing in this thread, and the random state is put back."""
    before = random_state.capture()
    nesting.depth += 1
    try:
        with _generators_put_back(), _drawing_apart(), contextlib.ExitStack() as stack:
            for variable_class in seams.variable_classes():
                for name in WRITES:
                    if name in vars(variable_class):
                        stack.enter_context(_ignored(variable_class, name))
            yield
    finally:  # once assignments do something again: the states lie in variables, too
        nesting.depth -= 1
        random_state.restore(before)


@contextlib.contextmanager
def _drawing_apart() -> Iterator[None]:
    """An operation of `tf.random` keeps its state where nobody can put it back, and is known by its seeds: with seeds that no script
    has, those of the script stay as they are."""
    seeding = seams.seeds_of_operations()
    get_seed, mine, drawn = seeding.get_seed, threading.get_ident(), itertools.count()

    @functools.wraps(get_seed)
    def apart(op_seed: Any) -> Any:
        return (SEED, next(drawn)) if threading.get_ident() == mine else get_seed(op_seed)

    seeding.get_seed = apart
    try:
        yield
    finally:
        seeding.get_seed = get_seed


@contextlib.contextmanager
def _generators_put_back() -> Iterator[None]:
    """A `tf.random.Generator` of the script's own moves on with each draw by an operation, not by an assignment."""
    kind: Any = sys.modules["tensorflow"].random.Generator
    skip, mine = kind.skip, threading.get_ident()
    drawn_from: Dict[int, Tuple[Any, Any]] = {}

    @functools.wraps(skip)
    def noted(self: Any, delta: Any) -> Any:
        if threading.get_ident() == mine and id(self) not in drawn_from:
            drawn_from[id(self)] = (self, self.state.numpy())
        return skip(self, delta)

    kind.skip = noted
    try:
        yield
    finally:
        kind.skip = skip
        for generator, state in drawn_from.values():
            generator.state.assign(state)


@contextlib.contextmanager
def _ignored(owner: Any, name: str) -> Iterator[None]:
    original, mine = vars(owner)[name], threading.get_ident()

    @functools.wraps(original)
    def ignore(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self if threading.get_ident() == mine else original(self, *args, **kwargs)

    setattr(owner, name, ignore)
    try:
        yield
    finally:
        setattr(owner, name, original)
