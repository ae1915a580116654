"""Keras's objects in a script's variables: layers, models, optimizers, metrics, seeds and their variables.

A layer's variables may come into being with its first call, an optimizer's with its first update. A script that is gone on
with has made neither call when its state is put back: so what was built by then is built by Keras's own means, from the
shapes it was built for.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from ..never_raise import outcome
from ..script_state.object_graph import PLAIN, Graph, Kind, Node, Ref, is_users, type_name
from ..script_state.object_restore import Missing, Restoration
from ..script_state.refusal import CannotPutBack
from ..tensorflow import seams as tf_seams
from . import seams

NOT_STATE = frozenset(
    {"built", "name", "compiled", "build", "quantize", "train_function", "test_function", "predict_function"}
)
HELD = ("optimizer", "inner_optimizer")  # attributes that are objects of Keras themselves
BATCH = "_holdfast_batch"  # on a model: shapes and types of what train_on_batch was given


class KerasKinds:
    """For one checkpoint. How a variable's value is taken and put back is the backend's affair."""

    def __init__(self, add: Callable[[Any], int], put: Callable[[int, Any], None]) -> None:
        self._add, self._put = add, put
        self._classes = seams.classes_with_variables()
        self._variable_class = seams.any_variable_class()
        self._names: Dict[type, Set[str]] = {}

    def kinds(self) -> List[Kind]:
        return [
            Kind("keras_variable", lambda one: isinstance(one, self._variable_class), self._take_variable, _fits_variable,
                 _cannot_make, self._fill_variable),
            Kind("keras", lambda one: isinstance(one, self._classes), self._take, lambda _node, _live: True, _cannot_make,
                 self._fill, self._children),
        ]  # fmt: skip

    # -- variables

    def _take_variable(self, variable: Any, _graph: Graph) -> Tuple[Any, Any]:
        shape, dtype = tuple(int(size) for size in variable.shape), str(variable.dtype)
        return (type_name(type(variable)), shape, dtype), (
            self._add(seams.value_of(variable)),
            bool(variable.trainable),
        )

    def _fill_variable(self, node: Node, live: Any, _restoration: Any) -> None:
        number, trainable = node.parts
        self._put(number, seams.value_of(live))
        if bool(live.trainable) != trainable:
            live.trainable = trainable

    # -- what owns them

    def _take(self, value: Any, graph: Graph) -> Tuple[Any, Any]:
        lists = {name: [graph.take(one) for one in held] for name, held in seams.held_by(value).items()}
        attributes = {name: graph.take(one) for name, one in self._attributes(value).items()}
        return (type_name(type(value)),), {
            "built": bool(getattr(value, "built", False)),
            "build": seams.build_config(value),
            "batch": vars(value).get(BATCH),
            "schedule": _schedule(value),
            "lists": lists,
            "attributes": attributes,
        }

    def _attributes(self, value: Any) -> Dict[str, Any]:
        """Of Keras's own classes what they show and is plain; of the user's everything that is not Keras's own."""
        own = is_users(type(value))
        found = {}
        for name, one in list(vars(value).items()):
            if name in NOT_STATE or name.startswith(("_holdfast", tf_seams.TRACKING)):
                continue
            public = not name.startswith("_")
            shown = type(one) in PLAIN and (public or name == seams.TRAINABLE)
            if shown or name in HELD or (own and (public or name not in self._names_of_keras(type(value)))):
                found[name] = one
        return found

    def _names_of_keras(self, kind: type) -> Set[str]:
        if kind not in self._names:
            self._names[kind] = seams.names_of_libraries(kind)
        return self._names[kind]

    def _children(self, node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
        _build(node, live)
        later = node.parts["built"] and not getattr(
            live, "built", True
        )  # an optimizer, whose variables are not all there
        for name, held in seams.held_by(live).items() if not later else ():
            yield from zip(node.parts["lists"].get(name, ()), held)
        here = vars(live)
        for name, ref in node.parts["attributes"].items():
            if name in here:
                yield ref, here[name]

    def _fill(self, node: Node, live: Any, restoration: Restoration) -> None:
        for name, refs in node.parts["lists"].items():
            held = seams.held_by(live).get(name, [])
            wanted = [restoration.object_of(ref) for ref in refs]
            if len(held) != len(wanted) or any(a is not b for a, b in zip(held, wanted)):
                raise CannotPutBack(f"{_named(live)} has {len(held)} {_words(name)}, {len(wanted)} were saved")
        if _schedule(live) != node.parts["schedule"]:
            raise CannotPutBack(f"{_named(live)} has another schedule of its learning rate than was saved")
        for name, ref in node.parts["attributes"].items():
            try:
                vars(live)[name] = restoration.object_of(ref)  # past `__setattr__`, which tracks what it is given
            except Missing:
                continue

    def bound(self, restoration: Restoration) -> None:
        """Optimizers are built for variables, which are there now."""
        for number, live in list(restoration.bound.items()):
            node = restoration.nodes[number]
            if node.kind != "keras" or not node.parts["built"] or getattr(live, "built", True):
                continue
            refs = node.parts["lists"].get(seams.TRAINED_BY, [])
            if refs and all(ref in restoration.bound for ref in refs):
                live.build([restoration.bound[ref] for ref in refs])
                for ref, held in self._children(node, live):
                    restoration.bind(ref, held)


def _build(node: Node, live: Any) -> None:
    """A layer or model that was built when it was saved; or what it measures, which is built with the first batch."""
    lists, is_built = node.parts["lists"], getattr(live, "built", True)
    if is_built:
        is_built = len(seams.held_by(live).get(seams.OF_METRICS, ())) == len(lists.get(seams.OF_METRICS, ()))
    if not node.parts["built"] or is_built or lists.get(seams.TRAINED_BY):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras warns where it cannot; then the variables are compared
        if node.parts["batch"] is not None:
            outcome(seams.build_for_batch, live, zeros_like(node.parts["batch"]))
        if not getattr(live, "built", True) and node.parts["build"] is not None:
            outcome(live.build_from_config, node.parts["build"])


def _schedule(owner: Any) -> str:
    """Of an optimizer's learning rate: it counts nothing itself, and a script may put another in its place."""
    found = seams.schedule_of(owner)
    if found is None:
        return ""
    config, _ = outcome(found.get_config)
    return f"{type(found).__name__} {sorted(config.items())}" if isinstance(config, dict) else type(found).__name__


def batch_like(batch: Any) -> Any:
    """Shapes and types of a batch."""
    if isinstance(batch, dict):
        return {name: batch_like(one) for name, one in batch.items()}
    if isinstance(batch, (list, tuple)):
        return tuple(batch_like(one) for one in batch)
    if hasattr(batch, "shape") and hasattr(batch, "dtype"):
        dtype = getattr(batch.dtype, "name", str(batch.dtype))
        return Like(tuple(int(size) for size in batch.shape), str(dtype))
    return None


class Like:
    def __init__(self, shape: Tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = shape, dtype


def zeros_like(batch: Any) -> Any:
    numpy: Any = sys.modules["numpy"]
    if isinstance(batch, dict):
        return {name: zeros_like(one) for name, one in batch.items()}
    if isinstance(batch, tuple):
        return tuple(zeros_like(one) for one in batch)
    return numpy.zeros(batch.shape, batch.dtype) if isinstance(batch, Like) else None


def _fits_variable(node: Node, live: Any) -> bool:
    shape, dtype = tuple(int(size) for size in live.shape), str(live.dtype)
    if (shape, dtype) != (node.of[1], node.of[2]):
        words = f"{node.of[1]} {node.of[2]} was saved, this process has {live.path} of {shape} {dtype}"
        raise CannotPutBack(f"a variable of {words}")
    return True


def _cannot_make(node: Node, _restoration: Any) -> Any:
    raise CannotPutBack(f"a {node.of[0][1]} was saved that this process has not made")


def _named(live: Any) -> str:
    return str(getattr(live, "name", type(live).__name__))


def _words(name: str) -> str:
    return name.strip("_").replace("_", " ")
