"""One step run eagerly, operation by operation, from the state before it: which part of it made something non-finite."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...numerics.events import INPUT, TARGET, UNKNOWN, WEIGHTS, BadInput, Place
from .. import seams
from .bad_rows import bad_rows, describe
from .finiteness import array_of, is_finite, is_float
from .op_record import BACKWARD, FORWARD, LOSS, UPDATE, OpRecord, Origin
from .value_words import clause, inputs_dtype, is_undefined


class Leaf(NamedTuple):
    """A tensor of the batch."""

    name: str
    is_target: bool
    tensor: Any


class Examined(NamedTuple):
    origin: str
    reproduced: bool
    replay: str
    at: Place
    values: Optional[str] = None
    input: Optional[BadInput] = None
    leaf: Any = None  # of the batch, that is bad
    undefined: bool = False  # an operation outside its domain, rather than numbers grown too large
    rows: Tuple[int, ...] = ()  # of the batch, whose values did it


def unknown(text: str, reproduced: bool) -> Examined:
    return Examined(UNKNOWN, reproduced, text[:300], {})


class Examination:
    """What the step changes is for the caller to put back."""

    def __init__(self, run: Callable[[], Any], leaves: List[Leaf], tf: Any) -> None:
        self._run, self._leaves, self._tf = run, leaves, tf
        self.record = OpRecord()
        self.record.outermost = Examination.examined.__code__
        self._target: Optional[Any] = None
        self._gradients: List[Any] = []

    def examined(self, *contexts: ContextManager[Any]) -> Examined:
        """`contexts`: what a framework redirects meanwhile to say which part of the step is running."""
        tape: Any = self._tf.GradientTape
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context)
            stack.enter_context(replaced(tape, "gradient", self._gradient(tape.__dict__["gradient"])))
            stack.enter_context(eagerly(self._tf))
            stack.enter_context(self.record.recording())
            self._run()
        return self._judged()

    def in_phase(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        record = self.record

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            outer, record.phase = record.phase, phase
            try:
                return function(*args, **kwargs)
            finally:
                record.phase = outer

        return within

    def layer_call(self, call: Callable[..., Any], model: Any = None) -> Callable[..., Any]:
        """In place of a layer's `__call__`."""
        layers = self.record.layers

        @functools.wraps(call)
        def noted(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if layer is model:
                return call(layer, *args, **kwargs)
            layers.append(str(layer.name))
            try:
                return call(layer, *args, **kwargs)
            finally:
                layers.pop()

        return noted

    def _gradient(self, method: Any) -> Callable[..., Any]:
        flatten = self._tf.nest.flatten

        def gradient(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            original = method.__get__(tape, type(tape))
            found = self.in_phase(BACKWARD, original)(target, *args, **kwargs)
            for one in flatten(target):
                if self._target is None and is_float(one) and not is_finite(one):
                    self._target = one
            self._gradients += [getattr(one, "values", one) for one in flatten(found) if one is not None]
            return found

        return gradient

    # -- what was seen

    def _judged(self) -> Examined:
        written = self.record.written
        ways: List[Any] = [] if self._target is None else [self._target]
        ways += [one for one in self._gradients if is_float(one) and not is_finite(one)][:1]
        ways += [value for phase, value in written if phase == UPDATE][:1]
        ways += [value for _, value in written][:1]
        for tensor in ways:
            origin = self.record.origin_of(tensor)
            if origin is not None:
                return self._told(origin)
        bad = bad_leaf(self._leaves)
        if bad is not None and ways:
            return of_batch(bad)
        if ways:
            return unknown("the step was repeated; which operation began it could not be followed", True)
        return unknown("the step was repeated operation by operation, and everything in it was finite", False)

    def _told(self, origin: Origin) -> Examined:
        if origin.given is not None:
            for leaf in self._leaves:
                if seams.tensor_id(leaf.tensor) == seams.tensor_id(origin.given):
                    return of_batch(leaf, origin)
        place = origin.op.place
        values = clause(place.kind, origin.op.inputs, origin.op.outputs)
        where = place.phase
        if place.phase == FORWARD and place.layer is None:
            where = LOSS  # computed by the step itself, from what the model gave
        if place.kind == "ReadVariableOp":
            where = WEIGHTS
        if origin.given is not None:
            values = f"a value that was given as {_what(origin.given)}"
        undefined = is_undefined(place.kind, values)
        rows = rows_of(origin, self._leaves)
        return Examined(where, True, _how(where), place_of(origin), values, undefined=undefined, rows=rows)


def bad_leaf(leaves: List[Leaf]) -> Optional[Leaf]:
    return next((leaf for leaf in leaves if is_float(leaf.tensor) and not is_finite(leaf.tensor)), None)


def of_batch(leaf: Leaf, origin: Optional[Origin] = None) -> Examined:
    bad = describe(leaf.name, array_of(leaf.tensor))
    where = TARGET if leaf.is_target else INPUT
    at: Place = place_of(origin) if origin is not None else {}
    rows = tuple(int(row) for row in bad_rows(array_of(leaf.tensor)))
    return Examined(where, True, _how(where), at, None, bad, leaf.tensor, rows=rows)


def rows_of(origin: Origin, leaves: List[Leaf]) -> Tuple[int, ...]:
    """Where what an operation made has a row for each of the batch: those that are bad; none elsewhere."""
    made = next(array_of(one) for one in origin.op.outputs if is_float(one) and not is_finite(one))
    first = array_of(leaves[0].tensor) if leaves else None
    if first is None or not made.ndim or not first.ndim or len(made) != len(first):
        return ()
    return tuple(int(row) for row in bad_rows(made))


def place_of(origin: Origin) -> Place:
    """In a backward pass: of the operation whose gradient it is."""
    op = origin.op
    place = op.forward or op.place
    at: Place = {"layer": place.layer, "op": place.kind, "dtype": inputs_dtype(op.inputs) or None}
    line = place.line()
    if line is not None:
        at["line"], at["code"] = line
    return at


def _what(tensor: Any) -> str:
    bad = describe("", array_of(tensor))
    return bad["what"] if bad is not None else "NaN"


def _how(where: str) -> str:
    said: Dict[str, str] = {
        INPUT: "the step was repeated from the state before it, and the batch itself has the value",
        TARGET: "the step was repeated from the state before it, and the targets themselves have the value",
    }
    return said.get(where, "the step was repeated operation by operation from the state before it")


@contextlib.contextmanager
def eagerly(tf: Any) -> Iterator[None]:
    """Also what is compiled by itself inside the step."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@contextlib.contextmanager
def replaced(owner: Any, name: str, stand_in: Any) -> Iterator[None]:
    """An attribute of a class, for a while."""
    original = owner.__dict__[name]
    setattr(owner, name, stand_in)
    try:
        yield
    finally:
        setattr(owner, name, original)
