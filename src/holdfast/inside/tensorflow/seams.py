"""TensorFlow's private names, all of them. `python -m tests.compatibility` looks for them in other versions."""

from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import Any, Callable, FrozenSet, Iterable, Iterator, List, Optional, Tuple

from ..seams import CHECKPOINT, DETAIL, RESCUE, RESUME, TELEMETRY, Seam

SEEN = "2.16 to 2.21"
_PYTHON = "tensorflow.python"
_CONTEXT = f"{_PYTHON}.eager.context"
_ITERATORS = f"{_PYTHON}.data.ops.iterator_ops"
_FUNCTIONS = f"{_PYTHON}.eager.polymorphic_function.polymorphic_function"
_OP_CALLBACKS = f"{_PYTHON}.framework.op_callbacks"
TRACEBACKS = f"{_PYTHON}.util.traceback_utils"
STACKS = f"{_PYTHON}.util.tf_stack"

OF_LOOPS = (
    Seam(_FUNCTIONS, "Function._call", (TELEMETRY,)),
    Seam(_ITERATORS, "OwnedIterator._next_internal", (TELEMETRY,)),
    Seam(_CONTEXT, "Context.ensure_initialized", (RESCUE,)),
    Seam(_CONTEXT, "Context", (RESCUE,), assigned="_initialized"),
    Seam(_CONTEXT, "Context._compute_gpu_options", (RESCUE,)),
    Seam(TRACEBACKS, "_EXCLUDED_PATHS", (DETAIL,)),
    Seam(STACKS, "StackTraceFilter.__enter__", (DETAIL,)),
    Seam(_ITERATORS, "OwnedIterator._create_iterator", (DETAIL,)),
    Seam(f"{_PYTHON}.data.ops.dataset_ops", "DatasetV2._functions", (DETAIL,)),
    Seam(f"{_PYTHON}.data.ops.structured_function", "StructuredFunctionWrapper", (DETAIL,), assigned="_func"),
    Seam(f"{_PYTHON}.framework.random_seed", "get_seed", (DETAIL,)),
    Seam(_OP_CALLBACKS, "add_op_callback", (DETAIL,)),
    Seam(_OP_CALLBACKS, "remove_op_callback", (DETAIL,)),
    Seam(f"{_PYTHON}.framework.func_graph", "FuncGraph", (DETAIL,), assigned="_watched_variables"),
    Seam(f"{_PYTHON}.ops.resource_variable_ops", "ResourceVariable.assign", (DETAIL,)),
    Seam(f"{_PYTHON}.ops.resource_variable_ops", "BaseResourceVariable.assign", (DETAIL,)),
)
TO_KEEP_LOOPS = (  # beside OF_FIT, which Keras's adapter looks for: it is Keras's optimizers that loops are known by
    Seam(f"{_PYTHON}.data.ops.dataset_ops", "DatasetV2.__iter__", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.data.ops.dataset_ops", "DatasetV2._inputs", (CHECKPOINT, RESUME)),
    Seam(_FUNCTIONS, "Function", (CHECKPOINT, RESUME), assigned="_python_function"),
    Seam(f"{_PYTHON}.framework.random_seed", "get_seed", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.trackable.data_structures", "ListWrapper", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.trackable.data_structures", "_DictWrapper", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.trackable.data_structures", "_TupleWrapper", (CHECKPOINT, RESUME)),
)
OF_FIT = (  # beside those of Keras itself
    Seam(_CONTEXT, "context", (CHECKPOINT, RESUME)),
    Seam(_CONTEXT, "Context", (CHECKPOINT, RESUME), assigned="_rng"),
    Seam(_CONTEXT, "global_seed", (CHECKPOINT, RESUME)),
    Seam(_CONTEXT, "executing_eagerly", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.data.util.random_seed", "get_seed", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.framework.config", "is_op_determinism_enabled", (CHECKPOINT, RESUME)),
    Seam(f"{_PYTHON}.ops.stateful_random_ops", "", (CHECKPOINT, RESUME)),
    Seam(_ITERATORS, "OwnedIterator._save", (CHECKPOINT, RESUME)),
    Seam(_ITERATORS, "OwnedIterator._restore", (RESUME,)),
    Seam(TRACEBACKS, "filter_traceback", (TELEMETRY, CHECKPOINT, RESUME, RESCUE)),
    Seam(_FUNCTIONS, "Function", (RESCUE,), assigned="_concrete_variable_creation_fn"),
    Seam(_FUNCTIONS, "Function", (RESCUE,), assigned="_function_cache"),
    Seam(f"{_PYTHON}.framework.func_graph", "FuncGraph._get_function", (RESCUE,)),
    Seam(f"{_PYTHON}.framework.tensor_util", "constant_value", (RESCUE,)),
    Seam(f"{_PYTHON}.ops.control_flow_util_v2", "get_func_graph", (RESCUE,)),
)

COUNTED = (  # where the types are that a leak is made of
    (f"{_PYTHON}.framework.ops", "EagerTensor"),
    (f"{_PYTHON}.ops.resource_variable_ops", "ResourceVariable"),
    (f"{_PYTHON}.framework.func_graph", "FuncGraph"),
)
CALL = "_call"  # of tf.function's class
TRACKING = "_self_"  # how what TensorFlow notes of an object that it tracks begins
TRACED = "_python_function"  # of a tf.function: what it was made of
NEXT = "_next_internal"  # of tf.data's iterator
CREATE = "_create_iterator"


def module(name: str) -> Any:
    return sys.modules[f"{_PYTHON}.{name}"]  # all of them are loaded: `import tensorflow` is complete


def context_module() -> Any:
    return sys.modules[_CONTEXT]


def iterator_class() -> Any:
    return sys.modules[_ITERATORS].OwnedIterator


def hide_frames(filtering: str, place: str) -> None:
    """`filtering`: the module of Keras or TensorFlow that cuts frames out of tracebacks by their files' places."""
    found: Any = sys.modules.get(filtering)
    if hasattr(found, "_EXCLUDED_PATHS"):
        found._EXCLUDED_PATHS = (*found._EXCLUDED_PATHS, place)


def leave_out_of_graphs(files: Iterable[str]) -> None:
    """Of the stack that each operation of a graph is made with, and that an error in it is told with. For this thread, as TensorFlow does
    with its own files, and for as long as it runs."""
    stacks: Any = sys.modules.get(STACKS)
    base: Any = getattr(stacks, "StackTraceFilter", None)
    if base is None:
        return
    ours = frozenset(files)

    class Filter(base):  # type: ignore[misc]
        def get_filtered_filenames(self) -> FrozenSet[str]:
            return ours.union(self.parent.get_filtered_filenames())

    Filter().__enter__()


def filter_traceback(function: Callable[..., Any]) -> Any:
    return sys.modules[TRACEBACKS].filter_traceback(function)


# -- random numbers


def python_random() -> Any:
    """What seeds of operations come from that were given none; None before the first."""
    return getattr(sys.modules[_CONTEXT].context(), "_rng", None)


def global_generator() -> Any:
    return getattr(sys.modules.get(f"{_PYTHON}.ops.stateful_random_ops"), "global_generator", None)


def make_global_generator() -> Any:
    return module("ops.stateful_random_ops").get_global_generator()


def seeds_of_operations() -> Any:
    """The module whose `get_seed` gives each operation that draws its two seeds."""
    return module("framework.random_seed")


def global_seed() -> Any:
    return context_module().global_seed()


# -- the context, before its first operation


def is_initialized(context: Any) -> bool:
    return bool(context._initialized)


def gpu_options_of(context: Any) -> Optional[Callable[[], Any]]:
    return getattr(context, "_compute_gpu_options", None)


def put_gpu_options(context: Any, compute: Callable[[], Any]) -> None:
    context._compute_gpu_options = compute


# -- iterators


def state_of(iterator: Any) -> Any:
    return iterator._save().numpy()


def put_state(iterator: Any, state: Any) -> None:
    iterator._restore(state)


# -- data sets


def elements_kept(dataset: Any) -> Optional[int]:
    """By a shuffle or prefetch; -1 where TensorFlow chooses."""
    return _number(getattr(dataset, "_buffer_size", None))


def batch_size_of(dataset: Any) -> Optional[int]:
    return _number(getattr(dataset, "_batch_size", None))


def graphs_of(dataset: Any) -> List[Any]:
    """Of the functions that it calls for its elements."""
    return [wrapper.function.graph for wrapper in dataset._functions()] if hasattr(dataset, "_functions") else []


def python_functions_of(dataset: Any) -> List[Any]:
    """What those graphs were made of."""
    return (
        [getattr(wrapper, "_func", None) for wrapper in dataset._functions()] if hasattr(dataset, "_functions") else []
    )


def runs_in_parallel(dataset: Any) -> bool:
    return getattr(dataset, "_num_parallel_calls", None) is not None


def cache_file(dataset: Any) -> bytes:
    """Empty where a cache is in memory."""
    name = getattr(dataset, "_filename", None)
    return bytes(name.numpy()) if name is not None else b""


def flat(spec: Any) -> list[Any]:
    return list(sys.modules["tensorflow"].nest.flatten(spec))


def _number(value: Any) -> Optional[int]:
    return int(value.numpy()) if hasattr(value, "numpy") else None


def is_nothing(spec: Any, tf: Any) -> bool:
    """Of an element that has no sample weights, say. The class has a public name since TensorFlow 2.19 or so."""
    return isinstance(spec, tf.OptionalSpec) or type(spec).__name__ == "NoneTensorSpec"


# -- traced functions


def name_of(function: Any) -> str:
    return str(getattr(function, "_name", "tf.function"))


def forget_traces(function: Any) -> Optional[Iterable[Any]]:
    """The signatures it was traced for; None in a TensorFlow that keeps its traces elsewhere."""
    cache = getattr(function, "_function_cache", None)
    if cache is None or not hasattr(cache, "clear"):
        return None
    signatures = [concrete.structured_input_signature for concrete in cache.values()]
    cache.clear()
    function._concrete_variable_creation_fn = None
    return signatures


def function_in(graph: Any, name: str) -> Any:
    return graph._get_function(name)


def loop_body(operation: Any) -> Any:
    shapes = [tensor.shape for tensor in operation.inputs]
    util = module("ops.control_flow_util_v2")
    return util.get_func_graph(operation, shapes, operation.get_attr("body").name)


def constant_value(tensor: Any) -> Any:
    return module("framework.tensor_util").constant_value(tensor)


def quick_shape(tensor: Any) -> Any:
    """`shape` would build an object each time; 0.3 µs."""
    quick = getattr(tensor, "_shape_tuple", None)
    return quick() if quick is not None else getattr(tensor, "shape", ())


# -- loops of the user's own


def dataset_class() -> Any:
    return module("data.ops.dataset_ops").DatasetV2


def knows_inputs() -> bool:
    """Asked before it is known whether there is such a class."""
    return hasattr(getattr(sys.modules.get(f"{_PYTHON}.data.ops.dataset_ops"), "DatasetV2", None), "_inputs")


def inputs_of(dataset: Any) -> List[Any]:
    return list(dataset._inputs())


def values_of(dataset: Any) -> List[Any]:
    """What a part of a data set was made with, as far as it tells."""
    names = ("_tensors", "_seed", "_seed2", "_buffer_size", "_batch_size", "_count", "_filenames")
    return [getattr(dataset, name, None) for name in names]


def tracked_containers() -> Tuple[Tuple[type, ...], Tuple[type, ...]]:
    """Classes of lists and of dicts that stand in for the script's own where an object tracks what it is given."""
    ours = module("trackable.data_structures")
    lists, dicts = [ours.ListWrapper, ours._TupleWrapper], [ours._DictWrapper]
    theirs: Any = sys.modules.get("keras.src.utils.tracking")
    if theirs is not None:
        lists.append(theirs.TrackedList)
        dicts += [getattr(theirs, name) for name in ("TrackedDict", "TrackedOrderedDict") if hasattr(theirs, name)]
    return tuple(lists), tuple(dicts)


def variables_read(graph: Any) -> List[Any]:
    """By what was traced of it so far."""
    return [one for one in getattr(graph, "_watched_variables", ()) if hasattr(one, "handle")]


def graph_being_traced() -> Any:
    return module("framework.ops").get_default_graph()


def graph_names() -> List[str]:
    """Of the graph that is being traced, and those around it."""
    found, graph = [], module("framework.ops").get_default_graph()
    while graph is not None:
        found.append(str(getattr(graph, "name", "")))
        graph = getattr(graph, "outer_graph", None)
    return found


# -- a step run operation by operation


@contextlib.contextmanager
def each_op(notice: Callable[..., None]) -> Iterator[None]:
    """Calls `notice` after every operation that this thread runs eagerly, with its kind, inputs, attributes, outputs."""
    callbacks = sys.modules[_OP_CALLBACKS]
    callbacks.add_op_callback(notice)
    try:
        yield
    finally:
        callbacks.remove_op_callback(notice)


def tensor_id(tensor: Any) -> int:
    """No two tensors of a process have the same."""
    return int(getattr(tensor, "_id", 0) or id(tensor))


def forward_outputs(frame: Optional[FrameType]) -> Iterator[List[Any]]:
    """What the operations have made whose gradient is being computed at this frame, the innermost first."""
    while frame is not None:
        if frame.f_code.co_name == "_gradient_function":
            yield [one for one in frame.f_locals.get("outputs") or () if one is not None]
        frame = frame.f_back


def tensors_of(dataset: Any) -> Any:
    """The arrays that a data set was made of; None of another kind."""
    return getattr(dataset, "_tensors", None)


def variable_classes() -> List[Any]:
    """In which assignments end, whoever makes them: each has methods of its own for it."""
    own = module("ops.resource_variable_ops")
    return [own.ResourceVariable, own.BaseResourceVariable]


def trained_by(optimizer: Any) -> Any:
    """The variables that a Keras optimizer was built for."""
    return getattr(optimizer, "_trainable_variables", ())
