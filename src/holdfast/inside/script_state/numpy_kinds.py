"""NumPy's arrays and random generators in a script's variables. Nothing is imported: without NumPy there are none."""

from __future__ import annotations

import sys
from typing import Any, List, Tuple

from .object_graph import Graph, Kind, Node, type_name
from .refusal import CannotTake


def kinds() -> List[Kind]:
    return [
        Kind("array", _is("ndarray"), _take_array, _fits_array, lambda node, _: node.parts.copy(), _fill_array),
        Kind("numpy_generator", _is_random("Generator"), _take_generator, _same_bits, _make_generator, _fill_generator),
        Kind("numpy_random", _is_random("RandomState"), _take_random, lambda *_: True, _make_random, _fill_random),
    ]


def _is(name: str) -> Any:
    def accepts(value: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(value, getattr(numpy, name))

    return accepts


def _is_random(name: str) -> Any:
    def accepts(value: Any) -> bool:
        found = sys.modules.get("numpy.random")
        return found is not None and isinstance(value, getattr(found, name))

    return accepts


def _take_array(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    if value.dtype.hasobject:
        raise CannotTake("an array of Python objects")
    numpy: Any = sys.modules["numpy"]
    if type(value) not in (numpy.ndarray, numpy.memmap):
        raise CannotTake(f"an array of the kind {type(value).__name__}")
    return (type_name(type(value)), value.shape, str(value.dtype)), numpy.array(value)


def _fits_array(node: Node, live: Any) -> bool:
    return (live.shape, str(live.dtype)) == node.of[1:] and bool(live.flags.writeable)


def _fill_array(node: Node, live: Any, _restoration: Any) -> None:
    live[...] = node.parts


def _take_generator(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)), type(value.bit_generator).__name__), value.bit_generator.state


def _same_bits(node: Node, live: Any) -> bool:
    return bool(type(live.bit_generator).__name__ == node.of[1])


def _make_generator(node: Node, _restoration: Any) -> Any:
    numpy: Any = sys.modules["numpy"]
    return numpy.random.Generator(getattr(numpy.random, node.of[1])())


def _fill_generator(node: Node, live: Any, _restoration: Any) -> None:
    live.bit_generator.state = node.parts


def _take_random(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)),), value.get_state()


def _make_random(_node: Node, _restoration: Any) -> Any:
    numpy: Any = sys.modules["numpy"]
    return numpy.random.RandomState()


def _fill_random(node: Node, live: Any, _restoration: Any) -> None:
    live.set_state(node.parts)
