"""What variables hold, as a graph of nodes that outlives the process: each object once, however many names it has.

A child of a node is a number (another node) or a 1-tuple (a plain value itself). Containers are copied as they are met,
so the graph is a snapshot; what a framework keeps in memory of its own (tensors) is its part's to copy, through a Kind.
Not taken: what belongs to this process (files, locks, writers, most objects of libraries). They are left as the new
process makes them.
"""

from __future__ import annotations

import collections
import enum
import functools
import io
import pickle
import random
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from ..library_paths import is_library
from .refusal import CannotTake

Ref = Union[int, Tuple[Any]]
PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice, type(NotImplemented)}
)
VALUE_MODULES = ("datetime", "decimal", "fractions", "pathlib", "uuid", "zoneinfo", "numpy", "_strptime")
PICKLED_MODULES = ("pandas", "itertools", "array")
_ITERATED: Tuple[Any, ...] = ([], (), "", range(1), {}.keys(), {}.values(), {}.items(), reversed([]))
ITERATORS = (*(type(iter(one)) for one in _ITERATED), zip, map, filter, reversed)
HASHES = ("_hashlib", "_blake2", "_md5", "_sha1", "_sha2", "_sha256", "_sha3", "_sha512")
NAMELESS = ("torch",)  # whose functions do not say their module
NAMESPACES = {("types", "SimpleNamespace"), ("argparse", "Namespace")}
MOST_NODES = 2_000_000  # beyond that the pause would be seconds


class Node(NamedTuple):
    kind: str
    of: Any  # the class, as (module, name), or what else tells it
    parts: Any  # children, or the state itself


class Traits(NamedTuple):
    """What a framework's part knows about objects of libraries."""

    holds_state: Callable[[Any], bool]  # its attributes belong to the script's state
    skipped: Callable[[Any, str, Any], bool]  # an attribute by owner, name and value that does not
    make: Callable[[Any], Any]  # an object of a class, with what is skipped


class Kind(NamedTuple):
    """How a framework's objects are taken and put back."""

    name: str
    accepts: Callable[[Any], bool]
    take: Callable[[Any, Graph], Tuple[Any, Any]]  # -> of, parts
    fits: Callable[[Node, Any], bool]  # whether this object of the new process can be the saved one
    make: Callable[[Node, Any], Any]  # a new one; given the Restoration
    fill: Callable[[Node, Any, Any], None]
    children: Optional[Callable[[Node, Any], Any]] = None  # refs that it holds, each with what stands there now


class Graph:
    def __init__(self, kinds: List[Kind], traits: Traits) -> None:
        self.nodes: List[Node] = []
        self.numbers: Dict[int, int] = {}  # by id
        self._alive: List[Any] = []  # so that no id is used twice meanwhile
        self._kinds = kinds
        self._kind_of: Dict[type, Optional[Kind]] = {}
        self._traits = traits

    def take(self, value: Any) -> Ref:
        kind = type(value)
        if kind in PLAIN:
            return (value,)
        number = self.numbers.get(id(value))
        if number is not None:
            return number
        if len(self.nodes) > MOST_NODES:
            raise CannotTake("its variables hold too many objects")
        number = self.numbers[id(value)] = len(self.nodes)
        self._alive.append(value)
        self.nodes.append(Node("left", type_name(kind), None))
        self.nodes[number] = self._node(value, kind)
        return number

    def _node(self, value: Any, kind: type) -> Node:
        special = self._special(value, kind)
        if special is not None:
            of, parts = special.take(value, self)
            return Node(special.name, of, parts)
        taken = _TAKE.get(kind)
        if taken is not None:
            return taken(self, value)
        if isinstance(value, enum.Enum):
            return Node("enum", type_name(kind), value.name)
        if isinstance(value, type) and is_users(value):
            return self._class(value)
        if isinstance(value, (type, types.ModuleType)):
            return _by_name(value)
        if isinstance(value, tuple):
            return Node("tuple", type_name(kind), [self.take(one) for one in value])
        if isinstance(value, random.Random):
            return Node("random", type_name(kind), value.getstate())
        if kind in ITERATORS:
            return Node("iterator", type_name(kind), [self.take(one) for one in value.__reduce__()])
        if kind.__module__ in HASHES:
            _check_hash(value)
        if kind.__module__.split(".")[0] in VALUE_MODULES:
            return Node("value", type_name(kind), value)
        if kind.__module__.split(".")[0] in PICKLED_MODULES:
            return _pickled(value, kind)
        if is_users(kind) or type_name(kind) in NAMESPACES or self._traits.holds_state(value):
            return self._object(value, kind)
        return Node("left", type_name(kind), None)

    def _special(self, value: Any, kind: type) -> Optional[Kind]:
        if kind not in self._kind_of:
            self._kind_of[kind] = next((one for one in self._kinds if one.accepts(value)), None)
        return self._kind_of[kind]

    def _object(self, value: Any, kind: type) -> Node:
        return Node("object", type_name(kind), (self.attributes(value), self._items(value)))

    def attributes(self, value: Any) -> Dict[str, Ref]:
        skipped = self._traits.skipped
        held = dict(getattr(value, "__dict__", None) or {})
        for name in slots_of(type(value)):
            if hasattr(value, name):
                held[name] = getattr(value, name)
        return {name: self.take(one) for name, one in held.items() if not skipped(value, name, one)}

    def _class(self, value: type) -> Node:
        """A class of the user's may keep values for all its objects."""
        held = {name: one for name, one in vars(value).items() if not name.startswith("__") and _is_value(one)}
        return Node("class", _name_of(value), {name: self.take(one) for name, one in held.items()})

    def _items(self, value: Any) -> Any:
        """Of a class of the user's that is a container itself."""
        for base in (dict, list, set, collections.deque):
            if isinstance(value, base):
                return _TAKE[base](self, value)
        return None


def _list(graph: Graph, value: Any) -> Node:
    if PLAIN.issuperset(map(type, value)):
        return Node("flat", type_name(type(value)), list(value))
    return Node("list", ("builtins", "list"), [graph.take(one) for one in list(value)])


def _dict(graph: Graph, value: Any) -> Node:
    if type(value) is dict and PLAIN.issuperset(map(type, value)) and PLAIN.issuperset(map(type, value.values())):
        return Node("flat", type_name(dict), dict(value))
    factory = graph.take(value.default_factory) if isinstance(value, collections.defaultdict) else None
    items = [(graph.take(key), graph.take(one)) for key, one in list(value.items())]
    return Node("dict", type_name(type(value)), (items, factory))


def _set(graph: Graph, value: Any) -> Node:
    return Node("set", type_name(type(value)), [graph.take(one) for one in list(value)])


def _deque(graph: Graph, value: Any) -> Node:
    return Node("deque", value.maxlen, [graph.take(one) for one in list(value)])


def _buffer(_graph: Graph, value: Any) -> Node:
    if value.closed:
        return Node("left", type_name(type(value)), None)
    return Node("buffer", type_name(type(value)), (value.getvalue(), value.tell()))


def _function(graph: Graph, value: Any) -> Node:
    """A function of the user's may keep state: in its closure, its defaults, its attributes."""
    if is_library(value.__code__.co_filename):
        return _by_name(value)
    name = _name_of(value)
    closure = {}
    for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
        try:
            closure[variable] = graph.take(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    defaults = [graph.take(one) for one in value.__defaults__ or ()]
    return Node("function", name, (closure, defaults, {k: graph.take(v) for k, v in vars(value).items()}))


def _method(graph: Graph, value: Any) -> Node:
    return Node("method", value.__name__, graph.take(value.__self__))


def _builtin(graph: Graph, value: Any) -> Node:
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, (types.ModuleType, type)):
        return _by_name(value)
    return _method(graph, value)


def _partial(graph: Graph, value: Any) -> Node:
    return Node("partial", None, [graph.take(value.func), graph.take(value.args), graph.take(value.keywords)])


def _check_hash(value: Any) -> None:
    """One that nothing was added to is as the new process makes it."""
    fresh: Any = sys.modules["hashlib"].new(value.name)
    length = () if value.digest_size else (8,)
    if fresh.digest_size != value.digest_size or fresh.digest(*length) != value.digest(*length):
        raise CannotTake(f"a hash ({value.name}) to which something was added cannot be saved")


def _pickled(value: Any, kind: type) -> Node:
    try:
        return Node("pickled", type_name(kind), pickle.dumps(value, protocol=4))
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError):
        raise CannotTake(f"an object of the kind {kind.__module__}.{kind.__name__} cannot be saved here") from None


_TAKE: Dict[type, Callable[[Graph, Any], Node]] = {
    list: _list,
    dict: _dict,
    collections.OrderedDict: _dict,
    collections.defaultdict: _dict,
    collections.Counter: _dict,
    set: _set,
    frozenset: _set,
    collections.deque: _deque,
    tuple: lambda graph, value: Node("tuple", ("builtins", "tuple"), [graph.take(one) for one in value]),
    bytearray: lambda _graph, value: Node("bytearray", None, bytes(value)),
    io.StringIO: _buffer,
    io.BytesIO: _buffer,
    types.FunctionType: _function,
    types.MethodType: _method,
    types.BuiltinFunctionType: _builtin,
    functools.partial: _partial,
}


def _is_value(held: Any) -> bool:
    return type(held) in PLAIN or type(held) in (list, dict, set, collections.deque, collections.OrderedDict)


def slots_of(kind: type) -> List[str]:
    found: List[str] = []
    for one in kind.__mro__:
        slots = one.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def type_name(kind: type) -> Tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _by_name(value: Any) -> Node:
    """What its name leads to; a function that only bears the name of another (a decorator's) is left."""
    names = [_name_of(value), *((module, str(getattr(value, "__name__", ""))) for module in NAMELESS)]
    name = next((one for one in names if named(one) is value), None)
    return Node("named", None, name) if name is not None else Node("left", type_name(type(value)), None)


def named(name: Tuple[str, str]) -> Any:
    found: Any = sys.modules.get(name[0])
    for part in name[1].split(".") if name[1] else ():
        found = getattr(found, part, None)
    return found


def _name_of(value: Any) -> Tuple[str, str]:
    if isinstance(value, types.ModuleType):
        return value.__name__, ""
    return str(getattr(value, "__module__", None) or ""), str(getattr(value, "__qualname__", ""))


_users: Dict[type, bool] = {}


def is_users(kind: type) -> bool:
    """A class that the script or one of its own modules defines."""
    known = _users.get(kind)
    if known is None:
        module = sys.modules.get(kind.__module__)
        path = getattr(module, "__file__", None)
        main = kind.__module__ == "__main__"
        known = _users[kind] = main or (path is not None and not is_library(path))
    return known
