"""Puts a saved graph into the objects of a new process: the same objects, found at the same names, get the saved content.

First every node is bound to the object that stands at its place now, where that one fits; then what has no such object
is made; then all are filled. So whoever else holds an object (an optimizer a parameter, a closure a list) sees it change.
"""

from __future__ import annotations

import collections
import functools
import pickle
import types
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from .object_graph import Kind, Node, Ref, Traits, named, slots_of, type_name
from .refusal import CannotPutBack

IMMUTABLE = ("pickled", "tuple", "named", "enum", "value", "partial", "method", "iterator")


class Missing(Exception):
    """Belongs to the process that is gone, and this one has nothing at its place."""


class Restoration:
    def __init__(self, nodes: List[Node], kinds: List[Kind], traits: Traits) -> None:
        self.nodes = nodes
        self._kinds = {kind.name: kind for kind in kinds}
        self._traits = traits
        self.bound: Dict[int, Any] = {}
        self._taken: Set[int] = set()  # ids of objects that are a node's already
        self._later: List[Tuple[Node, Any]] = []  # dicts whose keys are objects
        self._made: Dict[int, Any] = {}
        self._making: Set[int] = set()

    # -- which object of this process a node is

    def bind(self, ref: Ref, live: Any) -> None:
        todo = collections.deque([(ref, live)])
        while todo or self._later:
            if not todo:
                node, owner = self._later.pop()
                todo += self._by_object(node, owner)
                continue
            one, found = todo.popleft()
            if isinstance(one, int) and one not in self.bound and id(found) not in self._taken:
                node = self.nodes[one]
                if self._fits(node, found):
                    self.bound[one] = found
                    if node.kind not in IMMUTABLE:
                        self._taken.add(id(found))
                    special = self._kinds.get(node.kind)
                    inner = special.children if special is not None else self._children
                    todo += inner(node, found) if inner is not None else ()

    def _fits(self, node: Node, live: Any) -> bool:
        special = self._kinds.get(node.kind)
        if special is not None:
            return type_name(type(live)) == node.of[0] and special.fits(node, live)
        if node.kind == "class":
            return isinstance(live, type) and type_name(live) == node.of
        if node.kind == "function":
            return isinstance(live, types.FunctionType) and bool(live.__qualname__ == node.of[1])
        if node.kind == "method":
            return bool(getattr(live, "__name__", None) == node.of) and hasattr(live, "__self__")
        if node.kind == "deque":
            return type(live) is collections.deque and live.maxlen == node.of
        if node.kind in ("named", "partial", "bytearray"):
            return node.kind != "bytearray" or type(live) is bytearray
        return bool(type_name(type(live)) == node.of)

    def _children(self, node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
        if node.kind in ("list", "tuple", "deque"):
            yield from zip(node.parts, live)
        elif node.kind == "dict":
            yield from self._by_key(node, live)
        elif node.kind == "object":
            attributes, items = node.parts
            for name, ref in attributes.items():
                if hasattr(live, name) and name in _names(live):
                    yield ref, _attribute(live, name)
            if items is not None:
                yield from self._children(items, live)
        elif node.kind == "function":
            closure, defaults, attributes = node.parts
            for name, cell in zip(live.__code__.co_freevars, live.__closure__ or ()):
                if name in closure and _filled(cell):
                    yield closure[name], cell.cell_contents
            yield from zip(defaults, live.__defaults__ or ())
            yield from ((ref, vars(live)[name]) for name, ref in attributes.items() if name in vars(live))
        elif node.kind == "class":
            yield from ((ref, vars(live)[name]) for name, ref in node.parts.items() if name in vars(live))
        elif node.kind == "method":
            yield node.parts, live.__self__
        elif node.kind == "partial" and isinstance(live, functools.partial):
            yield from zip(node.parts, (live.func, live.args, live.keywords))

    def _by_key(self, node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
        items, _ = node.parts
        objects = False
        for key, ref in items:
            if isinstance(key, int):
                objects = True
            elif key[0] in live:
                yield ref, dict.__getitem__(live, key[0])
        if objects:
            self._later.append((node, live))

    def _by_object(self, node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
        for key, ref in node.parts[0]:
            if isinstance(key, int) and key in self.bound and self.bound[key] in live:
                yield ref, dict.__getitem__(live, self.bound[key])
            elif isinstance(key, int) and self.nodes[key].kind == "tuple":
                plain = self._plain_tuple(key)
                if plain is not None and plain in live:
                    yield ref, dict.__getitem__(live, plain)

    def _plain_tuple(self, number: int) -> Any:
        parts = self.nodes[number].parts
        return tuple(one[0] for one in parts) if all(isinstance(one, tuple) for one in parts) else None

    def keys_of(self, ref: Ref) -> List[Any]:
        """Of a saved dict, the plain ones."""
        node = self.nodes[ref] if isinstance(ref, int) else None
        if node is None or node.kind not in ("dict", "flat"):
            return []
        return (
            list(node.parts) if node.kind == "flat" else [key[0] for key, _ in node.parts[0] if isinstance(key, tuple)]
        )

    # -- the objects

    def object_of(self, ref: Ref) -> Any:
        if isinstance(ref, tuple):
            return ref[0]
        if ref in self._made:
            return self._made[ref]
        node = self.nodes[ref]
        if node.kind == "left" or (node.kind == "named" and ref in self.bound):
            return self._as_it_is(ref, node)
        if node.kind in IMMUTABLE:
            found = self._immutable(ref, node)
        elif ref in self.bound:
            found = self.bound[ref]
        else:
            found = self._new(node)
        self._made[ref] = found
        return found

    def _as_it_is(self, ref: int, node: Node) -> Any:
        if node.kind == "named":
            found = named(node.parts)
            return self.bound[ref] if found is None else found
        if ref not in self.bound:
            raise Missing(f"{node.of[0]}.{node.of[1]}" if isinstance(node.of, tuple) else str(node.of))
        return self.bound[ref]

    def _immutable(self, ref: int, node: Node) -> Any:
        if ref in self._making:
            raise CannotPutBack("a tuple that holds itself")
        self._making.add(ref)
        try:
            return self._immutable_of(ref, node)
        finally:
            self._making.discard(ref)

    def _immutable_of(self, ref: int, node: Node) -> Any:
        if node.kind == "named":
            found = named(node.parts)
            if found is None:
                raise Missing(".".join(node.parts))
            return found
        if node.kind == "enum":
            return _class(node.of)[node.parts]
        if node.kind in ("value", "pickled"):
            return pickle.loads(node.parts) if node.kind == "pickled" else node.parts
        if node.kind == "method":
            owner, live = self.object_of(node.parts), self.bound.get(ref)
            return live if getattr(live, "__self__", None) is owner else getattr(owner, node.of)
        if node.kind == "iterator":
            made = [self.object_of(one) for one in node.parts]
            self._fill_before(node.parts[1])
            iterator = made[0](*made[1])
            if len(made) > 2 and made[2] is not None:
                iterator.__setstate__(made[2])
            return iterator
        parts = [self.object_of(one) for one in node.parts]
        if node.kind == "partial":
            return functools.partial(parts[0], *parts[1], **parts[2])
        live = self.bound.get(ref)
        if live is not None and len(live) == len(parts) and all(a is b for a, b in zip(live, parts)):
            return live
        kind = _class(node.of)
        return kind._make(parts) if hasattr(kind, "_make") else tuple.__new__(kind, parts)

    def _fill_before(self, arguments: Ref) -> None:
        """What an iterator is made of: one over a list that is empty yet cannot be put further on."""
        for ref in self.nodes[arguments].parts if isinstance(arguments, int) else ():
            if isinstance(ref, int) and self.nodes[ref].kind in ("list", "flat"):
                self._fill(self.nodes[ref], self.object_of(ref))

    def _new(self, node: Node) -> Any:
        special = self._kinds.get(node.kind)
        if special is not None:
            return special.make(node, self)
        if node.kind in ("list", "flat"):
            return {} if isinstance(node.parts, dict) else []
        if node.kind == "deque":
            return collections.deque(maxlen=node.of)
        if node.kind == "bytearray":
            return bytearray()
        if node.kind in ("function", "class"):
            found = named(node.of)
            if found is None:
                raise Missing(".".join(node.of))
            return found
        kind = _class(node.of)
        if node.kind == "buffer":
            return kind()
        if kind is frozenset:
            return frozenset(self.object_of(one) for one in node.parts)
        return self._traits.make(kind) if node.kind == "object" else kind.__new__(kind)

    # -- their content

    def fill(self) -> None:
        """Everything that was asked for, and what it holds; asking for content may ask for more."""
        filled: Set[int] = set()
        while len(filled) < len(self._made):
            for number in [one for one in self._made if one not in filled]:
                filled.add(number)
                self._fill(self.nodes[number], self._made[number])

    def _fill(self, node: Node, live: Any) -> None:
        special = self._kinds.get(node.kind)
        if special is not None:
            special.fill(node, live, self)
        elif node.kind in ("list", "flat", "deque", "dict", "set", "bytearray"):
            self._fill_container(node, live)
        elif node.kind == "random":
            live.setstate(node.parts)
        elif node.kind == "buffer":
            live.seek(0)
            live.truncate()
            live.write(node.parts[0])
            live.seek(node.parts[1])
        elif node.kind == "function":
            self._fill_function(node, live)
        elif node.kind == "class":
            for name, ref in node.parts.items():
                self.assign(functools.partial(setattr, live, name), ref)
        elif node.kind == "object":
            self.fill_attributes(node.parts[0], live)
            if node.parts[1] is not None:
                self._fill(node.parts[1], live)

    def _fill_container(self, node: Node, live: Any) -> None:
        if node.kind == "dict":
            self._fill_dict(node, live)
        elif isinstance(live, dict):  # flat
            dict.clear(live)
            dict.update(live, node.parts)
        elif isinstance(live, (list, bytearray)):
            live[:] = self._items(node.parts) if node.kind == "list" else node.parts
        elif not isinstance(live, frozenset):
            content = self._items(node.parts)
            live.clear()
            live.update(content) if isinstance(live, set) else live.extend(content)

    def _items(self, refs: List[Ref]) -> List[Any]:
        try:
            return [self.object_of(one) for one in refs]
        except Missing as error:
            raise CannotPutBack(f"a list held {error}, which cannot be saved") from None

    def _fill_dict(self, node: Node, live: Any) -> None:
        base: Any = collections.OrderedDict if isinstance(live, collections.OrderedDict) else dict
        items, factory = node.parts
        content = []
        for key, ref in items:
            try:
                name = self.object_of(key)
                content.append((name, self.object_of(ref)))
            except Missing as error:
                if not isinstance(key, tuple) or key[0] not in live:
                    raise CannotPutBack(f"a dict held {error}, which cannot be saved") from None
                content.append((key[0], dict.__getitem__(live, key[0])))
        base.clear(live)
        if factory is not None:
            live.default_factory = self.object_of(factory)
        for key, value in content:
            base.__setitem__(live, key, value)

    def _fill_function(self, node: Node, live: Any) -> None:
        closure, defaults, attributes = node.parts
        for name, cell in zip(live.__code__.co_freevars, live.__closure__ or ()):
            if name in closure:
                self.assign(functools.partial(setattr, cell, "cell_contents"), closure[name])
        if defaults and len(defaults) == len(live.__defaults__ or ()):
            for ref in defaults:
                self.assign(_in_place, ref)
        for name, ref in attributes.items():
            self.assign(functools.partial(setattr, live, name), ref)

    def fill_attributes(self, attributes: Dict[str, Ref], live: Any) -> None:
        held: Dict[str, Any] = getattr(live, "__dict__", None) or {}
        slots, skipped = slots_of(type(live)), self._traits.skipped
        for name, ref in attributes.items():
            put = (
                functools.partial(object.__setattr__, live, name)
                if name in slots
                else functools.partial(_put, live, name)
            )
            self.assign(put, ref)
        for name in [one for one in held if one not in attributes and not skipped(live, one, held[one])]:
            del held[name]

    def assign(self, put: Callable[[Any], None], ref: Ref) -> None:
        """What belonged to the other process is left as this one made it."""
        try:
            value = self.object_of(ref)
        except Missing:
            return
        put(value)


def _put(owner: Any, name: str, value: Any) -> None:
    """Past `__setattr__` and properties: those were at work when the value was set at first."""
    owner.__dict__[name] = value


def _in_place(_value: Any) -> None:
    return None


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises where it is empty
    except ValueError:
        return False
    return True


def _names(live: Any) -> Set[str]:
    return {*(getattr(live, "__dict__", None) or ()), *slots_of(type(live))}


def _attribute(live: Any, name: str) -> Any:
    held = getattr(live, "__dict__", None)
    return held[name] if held is not None and name in held else getattr(live, name)


def _class(name: Tuple[str, str]) -> Any:
    found = named(name)
    if found is None:
        raise CannotPutBack(f"there is no class {name[1]} in {name[0]}")
    return found
