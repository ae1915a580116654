"""TensorFlow's objects in a script's variables: which belong to its state, and how each is taken and put back."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

from ..script_state.object_graph import Graph, Kind, Node, Ref, Traits, type_name
from ..script_state.object_restore import Missing, Restoration
from ..script_state.refusal import CannotPutBack, CannotTake
from . import seams
from .value_store import SavedValues, ValueStore

WITHOUT_VALUE = ("resource", "variant")  # types of tensors that only lead to something inside TensorFlow


class TensorFlowKinds:
    """For one checkpoint: taken into `store`, or put back from `saved`."""

    def __init__(self, tf: Any, store: Any = None, saved: Any = None) -> None:
        self._tf = tf
        self._store: ValueStore = store
        self._saved: SavedValues = saved
        self._function_class = type(tf.function(lambda: None))
        self._lists, self._dicts = seams.tracked_containers()

    def kinds(self) -> List[Kind]:
        tf = self._tf
        return [
            Kind("variable", lambda one: isinstance(one, tf.Variable), self._take_variable, self._fits_variable,
                 self._make_variable, self._fill_variable),
            Kind("tensor", lambda one: isinstance(one, tf.Tensor), self._take_tensor, _never, self._make_tensor, _nothing),
            Kind("composite", self._is_composite, self._take_composite, _never, self._make_composite, _nothing),
            Kind("tf_generator", lambda one: isinstance(one, tf.random.Generator), self._take_generator, _same_algorithm,
                 self._make_generator, self._fill_generator),
            Kind("tf_value", lambda one: isinstance(one, (tf.DType, tf.TensorShape)), _take_value, _never, _value,
                 _nothing),
            Kind("data", lambda one: isinstance(one, (tf.data.Dataset, seams.iterator_class())), _take_by_place,
                 _always, _not_here, _nothing),
            Kind("tracked_list", lambda one: isinstance(one, self._lists), _take_list, _always, _new_list, _fill_list,
                 _items),
            Kind("tracked_dict", lambda one: isinstance(one, self._dicts), _take_dict, _always, _new_dict, _fill_dict,
                 _values),
        ]  # fmt: skip

    def traits(self) -> Traits:
        return Traits(self._holds_state, self._is_skipped, lambda kind: kind.__new__(kind))

    def _holds_state(self, value: Any) -> bool:
        return isinstance(value, self._function_class)

    def _is_skipped(self, owner: Any, name: str, _value: Any) -> bool:
        """Of a tf.function the Python function counts, whose closure may hold anything; its traces are made again."""
        if isinstance(owner, self._function_class):
            return name != seams.TRACED
        return name.startswith(("_holdfast", seams.TRACKING))

    # -- variables

    def _take_variable(self, variable: Any, _graph: Graph) -> Tuple[Any, Any]:
        if not hasattr(variable, "handle"):
            raise CannotTake(f"a variable of the kind {type(variable).__name__}")
        return (type_name(type(variable)), tuple(variable.shape), variable.dtype.name, bool(variable.trainable)), (
            self._store.add_variable(variable)
        )

    def _fits_variable(self, node: Node, live: Any) -> bool:
        check_same_shape(node, live.name, tuple(live.shape), live.dtype.name)
        return True

    def _make_variable(self, node: Node, _restoration: Any) -> Any:
        return self._tf.Variable(self._saved.tensor(node.parts), trainable=node.of[3])

    def _fill_variable(self, node: Node, live: Any, _restoration: Any) -> None:
        self._saved.put(node.parts, live)

    # -- tensors

    def _take_tensor(self, tensor: Any, _graph: Graph) -> Tuple[Any, Any]:
        if tensor.dtype.name in WITHOUT_VALUE or not hasattr(tensor, "numpy"):
            raise CannotTake(f"a tensor of the type {tensor.dtype.name} without a value of its own")
        return (type_name(type(tensor)),), self._store.add_tensor(tensor)

    def _make_tensor(self, node: Node, _restoration: Any) -> Any:
        return self._saved.tensor(node.parts)

    def _is_composite(self, value: Any) -> bool:
        return isinstance(value, (self._tf.IndexedSlices, self._tf.SparseTensor, self._tf.RaggedTensor))

    def _take_composite(self, value: Any, graph: Graph) -> Tuple[Any, Any]:
        parts = self._tf.nest.flatten(value, expand_composites=True)
        return (type_name(type(value)),), (self._tf.type_spec_from_value(value), [graph.take(one) for one in parts])

    def _make_composite(self, node: Node, restoration: Restoration) -> Any:
        spec, parts = node.parts
        return self._tf.nest.pack_sequence_as(
            spec, [restoration.object_of(one) for one in parts], expand_composites=True
        )

    # -- random generators

    def _take_generator(self, value: Any, _graph: Graph) -> Tuple[Any, Any]:
        return (type_name(type(value)), int(value.algorithm)), self._store.add_variable(value.state)

    def _make_generator(self, node: Node, _restoration: Any) -> Any:
        return self._tf.random.Generator.from_state(self._saved.tensor(node.parts), alg=node.of[1])

    def _fill_generator(self, node: Node, live: Any, _restoration: Any) -> None:
        self._saved.put(node.parts, live.state)


def check_same_shape(node: Node, name: str, shape: Tuple[int, ...], dtype: str) -> None:
    """A model that was built otherwise is not turned into the saved one."""
    if (shape, dtype) != (node.of[1], node.of[2]):
        saved, now = f"{node.of[1]} {node.of[2]}", f"{shape} {dtype}"
        raise CannotPutBack(f"a variable of {saved} was saved, this process has {name} of {now}")


def _same_algorithm(node: Node, live: Any) -> bool:
    return bool(int(live.algorithm) == node.of[1])


def _always(_node: Node, _live: Any) -> bool:
    return True


def _never(_node: Node, _live: Any) -> bool:
    return False


def _nothing(_node: Node, _live: Any, _restoration: Any) -> None:
    return None


def _take_value(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)),), value


def _value(node: Node, _restoration: Any) -> Any:
    return node.parts


def _take_by_place(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    """A data set or an iterator is the one that the new process has at the same name."""
    return (type_name(type(value)),), None


def _not_here(node: Node, _restoration: Any) -> Any:
    raise Missing(".".join(node.of[0]))


# -- lists and dicts that Keras or TensorFlow put in the place of the script's own


def _take_list(value: Any, graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)),), [graph.take(one) for one in list(value)]


def _items(node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
    yield from zip(node.parts, list(live))


def _new_list(_node: Node, _restoration: Any) -> Any:
    return []


def _fill_list(node: Node, live: Any, restoration: Restoration) -> None:
    wanted = [restoration.object_of(one) for one in node.parts]
    held = list(live)
    if len(held) != len(wanted) or any(a is not b for a, b in zip(held, wanted)):
        live[:] = wanted


def _take_dict(value: Any, graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)),), [(key, graph.take(one)) for key, one in list(value.items())]


def _values(node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
    for key, ref in node.parts:
        if key in live:
            yield ref, live[key]


def _new_dict(_node: Node, _restoration: Any) -> Any:
    return {}


def _fill_dict(node: Node, live: Any, restoration: Restoration) -> None:
    wanted = {key: restoration.object_of(ref) for key, ref in node.parts}
    for key in [one for one in live if one not in wanted]:
        del live[key]
    for key, value in wanted.items():
        if key not in live or live[key] is not value:
            live[key] = value
