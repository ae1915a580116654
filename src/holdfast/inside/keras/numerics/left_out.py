"""Variables that the loss depends on and that nobody trains: no tape was asked for them, and they stay the same.

A teacher, a network that only measures, or the target of Q-learning is meant to stay as it is. So only what is fed, in the
end, to a layer that is trained counts.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, ContextManager, Dict, FrozenSet, Iterator, List, Set, Tuple

from ...tensorflow.numerics.finiteness import array_of, is_float
from .. import seams
from ..undo import replaced

STEPS = (
    150  # in which another step (a generator after its critic), a later phase, or the script itself may take its turn
)
SUSPECTS, NAMES = 64, 8
SOME = 256  # entries that stand for all of a variable
NOBODY: FrozenSet[int] = frozenset()


class Noted:
    """Of one step that is run eagerly: what the tapes were not asked for, and which layers were fed by which."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self.variables: List[Any] = []  # that a tape has watched and would have a gradient for
        self._asked: Set[int] = set()
        self._fed: Dict[int, Tuple[Any, FrozenSet[int]]] = {}  # by layer: those whose results it was given
        self._made: Dict[int, Tuple[Any, FrozenSet[int]]] = {}  # by tensor: the layers it came through
        self._around: List[FrozenSet[int]] = [NOBODY]  # of the layers that are being called

    def at_the_tapes(self) -> ContextManager[Any]:
        tapes, flatten = self._tf.GradientTape, self._tf.nest.flatten
        method = tapes.__dict__["gradient"]

        def noted(tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            gradient = method.__get__(tape, type(tape))
            self._asked.update(id(seams.value_or_itself(one)) for one in flatten(sources))
            self.variables = [one for one in self.variables if id(one) not in self._asked]
            others = [one for one in tape.watched_variables() if id(one) not in self._asked]
            if not others or args or kwargs.get("unconnected_gradients", "none") not in (None, "none"):
                return gradient(target, sources, *args, **kwargs)
            gradients, of_others = gradient(target, [sources, others], **kwargs)
            self.variables += [one for one, each in zip(others, of_others) if each is not None]
            return gradients

        return replaced(tapes, "gradient", noted)

    @contextlib.contextmanager
    def during(self, layer: Any, given: Any) -> Iterator[List[Any]]:
        """Of a layer's call; the result is put into the list."""
        result: List[Any] = []
        before = self._around[-1].union(*(self._through(one) for one in self._tf.nest.flatten(given)))
        _, known = self._fed.get(id(layer), (None, NOBODY))
        self._fed[id(layer)] = (layer, known | before)
        self._around.append(before)
        try:
            yield result
        finally:
            self._around.pop()
            for one in self._tf.nest.flatten(result):
                self._made[id(one)] = (one, self._through(one) | before | {id(layer)})

    def _through(self, tensor: Any) -> FrozenSet[int]:
        return self._made.get(id(tensor), (None, NOBODY))[1]

    def suspects(self, given: List[Any]) -> List[Any]:
        """(variable of TensorFlow's, its name) of those that feed a layer of which something was given to an optimizer. What a layer
        says is not trainable is frozen on purpose."""
        trained = {id(seams.value_or_itself(one)) for one in given} | self._asked
        owners = [
            (layer, {id(seams.value_or_itself(one)): one for one in layer.variables}) for layer, _ in self._fed.values()
        ]
        feeding: Set[int] = set()
        for layer, fed in self._fed.values():
            if any(id(seams.value_or_itself(one)) in trained for one in layer.trainable_variables):
                feeding |= fed
        found: Dict[int, Any] = {}
        for variable in self.variables:
            held = [(layer, known[id(variable)]) for layer, known in owners if id(variable) in known]
            feeds = id(variable) not in trained and any(id(layer) in feeding for layer, _ in held)
            if feeds and held[0][1].trainable and is_float(variable):
                found[id(variable)] = (variable, str(getattr(held[0][1], "path", variable.name)))
        return list(found.values())[:SUSPECTS]


class LeftOut:
    def __init__(self, noted: Noted, given: List[Any], step: int) -> None:
        self._step = step
        self._suspects = [(name, weakref.ref(one), _some(one)) for one, name in noted.suspects(given)]

    def still(self, step: int) -> List[str]:
        """Names of those that are as they were. An optimizer that this step does not use would have changed them, or, where a bias
        cancels out, the rest of its layer."""
        moved = {_layer(name) for name, found, some in self._suspects if found() is None or _some(found()) != some}
        self._suspects = [each for each in self._suspects if _layer(each[0]) not in moved]
        return [name for name, _, _ in self._suspects[:NAMES]] if step >= self._step + STEPS else []

    def never_trained(self) -> bool:
        """As far as biases tell: they begin at zero, and a layer that was trained anywhere has others."""
        biases = {_layer(name): found() for name, found, _ in self._suspects if name.endswith("/bias")}
        layers = {_layer(name) for name, _, _ in self._suspects}
        known = [array_of(one.value()) for one in biases.values() if one is not None]
        return layers == biases.keys() and len(known) == len(layers) > 0 and not any(one.any() for one in known)


def _layer(name: str) -> str:
    return name.rsplit("/", 1)[0]


def _some(variable: Any) -> List[float]:
    return array_of(variable.value()).reshape(-1)[:SOME].tolist()  # type: ignore[no-any-return]
