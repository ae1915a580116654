"""NumPy's arrays and random generators in a script's variables. Nothing is imported: without NumPy there are none."""

from __future__ import annotations

import sys
import zlib
from typing import Any, List, Tuple

from .object_graph import Graph, Kind, Node, type_name
from .object_restore import Missing
from .refusal import CannotPutBack, CannotTake

COPIED_BYTES = 1 << 20  # at most, of a file that is only read
LOOKED_AT = 64  # values of a larger one


def kinds() -> List[Kind]:
    return [
        Kind("array", _is("ndarray"), _take_array, _fits_array, _make_array, _fill_array),
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
    content = _known_by(value) if _is_data_on_disk(value) else numpy.array(value)
    return (type_name(type(value)), value.shape, str(value.dtype)), content


def _is_data_on_disk(value: Any) -> bool:
    """A file that is only read, and may be larger than memory: it is left as the new process opens it."""
    numpy: Any = sys.modules["numpy"]
    return isinstance(value, numpy.memmap) and not value.flags.writeable and bool(value.nbytes > COPIED_BYTES)


def _known_by(value: Any) -> int:
    return zlib.crc32(value.flat[:: max(1, value.size // LOOKED_AT)].tobytes())


def _fits_array(node: Node, live: Any) -> bool:
    same = bool((live.shape, str(live.dtype)) == node.of[1:])
    if isinstance(node.parts, int):
        if same and _known_by(live) != node.parts:
            raise CannotPutBack("a file that an array shows is another one than before")
        return same
    return same and bool(live.flags.writeable)


def _make_array(node: Node, _restoration: Any) -> Any:
    if isinstance(node.parts, int):
        raise Missing("an array that shows a file")
    return node.parts.copy()


def _fill_array(node: Node, live: Any, _restoration: Any) -> None:
    if not isinstance(node.parts, int):
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
