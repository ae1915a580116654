"""Autograd's graph after a backward pass that ran out of memory: what of it is missing, and its memory given back.

Nodes have numbers in the order they were made, and a backward pass runs the one with the highest number first. So the
nodes of one call of a module are those numbered while it ran, and what was made later than the call that failed has
been run.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Set, Tuple

from ..rescue_engine import CannotSplit
from . import seams

Range = Tuple[int, int]  # numbers from, and up to but not with


def number_of(node: Any) -> int:
    return seams.node_number(node)


def is_leaf(node: Any) -> bool:
    return hasattr(node, "variable")


def _below(node: Any) -> List[Any]:
    return [one for one, _ in node.next_functions if one is not None]


def walked(roots: Iterable[Any], stops: Iterable[Range]) -> Iterator[Any]:
    """Each node that is reached from the roots; those within `stops` are given, and not gone beyond."""
    ranges = list(stops)
    seen: Set[Any] = set()
    todo = [node for node in roots if node is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if is_leaf(node) or not within(number_of(node), ranges):
            todo += _below(node)


def within(number: int, ranges: Iterable[Range]) -> bool:
    return any(begin <= number < end for begin, end in ranges)


def nothing_is_missing(
    roots: List[Any], arrived: List[Range], others: List[Range], failed: Range, known: Set[int], complete: Set[int]
) -> None:
    """Every gradient that the failed pass computed beside the calls that are run again has arrived where it belongs."""
    not_run, unknown = False, False
    for node in walked(roots, arrived):
        if is_leaf(node):
            leaf = id(node.variable)
            if leaf in known and leaf not in complete:
                raise CannotSplit("a parameter is used in the module and beside it")
            unknown = unknown or leaf not in known
        elif within(number_of(node), others):
            raise CannotSplit("memory ran out where another output of an earlier call was under way, too")
        else:
            not_run = not_run or (number_of(node) < failed[0] and not within(number_of(node), arrived))
    if not_run and unknown:
        raise CannotSplit("a parameter beside the modules may have no gradient yet")


def nodes_into(roots: List[Any], ranges: List[Range]) -> Dict[Tuple[int, int], Tuple[Any, int]]:
    """By which a backward pass comes into calls: number of a node and of its output -> the node, and that number."""
    found = {}
    for node in walked(roots, ranges):
        if not is_leaf(node) and not within(number_of(node), ranges):
            for below, output in node.next_functions:
                if below is not None and not is_leaf(below) and within(number_of(below), ranges):
                    found[number_of(below), int(output)] = (below, int(output))
    return found


def depend_on_each_other(records: List[Any]) -> bool:
    """What one of these calls was given comes from another one."""
    ranges = [record.range for record in records]
    for record in records:
        nodes = [tensor.grad_fn for tensor in record.noted.inputs if tensor.grad_fn is not None]
        if any(not is_leaf(node) and within(number_of(node), ranges) for node in walked(nodes, ranges)):
            return True
    return False


def leads_to(tensor: Any, arrived: List[Range], failed: Range) -> str:
    """From an input of a call: `open` where the failed pass has not been, `done` where it has."""
    found: Set[str] = set()
    for node in walked([tensor.grad_fn], [*arrived, (0, failed[0])]):
        if not is_leaf(node):
            number = number_of(node)
            found.add("done" if within(number, arrived) else "open" if number < failed[0] else "run")
    if len(found) == 1 and "run" not in found:
        return found.pop()
    raise CannotSplit("operations between two modules have lost what they need")


def release(roots: Iterable[Any], of: Range) -> int:
    """Lets go of what the nodes of one call have saved; they cannot be run any more. Returns of how many tensors."""
    count = 0
    seen: Set[Any] = set()
    todo = [node for node in roots if node is not None]
    while todo:
        node = todo.pop()
        if node in seen or is_leaf(node) or number_of(node) < of[0]:
            continue
        seen.add(node)
        todo += _below(node)
        if within(number_of(node), [of]):
            count += sum(_let_go(saved) for saved in _saved_by(node))
    return count


def _saved_by(node: Any) -> Iterator[Any]:
    for name in dir(node):
        if name.startswith(seams.SAVED_FOR_BACKWARD):
            try:
                found = getattr(node, name, None)
            except RuntimeError:  # a function of Python's that has run, and has freed what it saved
                continue
            yield from found if isinstance(found, (tuple, list)) else (found,)


def _let_go(saved: Any) -> bool:
    try:
        saved.register_hooks(lambda _tensor: 0, _gone)  # packs at once: the tensor is dropped
    except (AttributeError, RuntimeError):  # there is none, it is freed, or hooks of the script's keep it
        return False
    return True


def _gone(_packed: Any) -> Any:
    raise RuntimeError("holdfast: this part of the graph was run again in pieces and is freed")
