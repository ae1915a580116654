"""Pieces of a batch where several ranks train together: each rank cuts its own batches, alone, and nothing is sent for it.

DistributedDataParallel sends a parameter's gradient once autograd has added it, and counts on one addition a step. So pieces
compute their gradients without adding them, and what is added is the whole batch's. A call that talks to other ranks by
itself is not cut: they would be asked more often than they ask.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any, Iterable, Iterator, List, Optional

from ..rescue_engine import CannotSplit
from . import distributed_seams

WRAPPER = "DistributedDataParallel"  # sends around the call of the module that it holds, never within it
TALKS = "its forward pass talks to other ranks by itself"


def count(torch: Any) -> int:
    """Of the ranks that train together; one where nobody else does."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def are_several(torch: Any) -> bool:
    return count(torch) > 1


def wrappers(torch: Any) -> List[Any]:
    """Those of type DistributedDataParallel, looked for among all objects of the process, a tenth of a second: only where something is
    wrong."""
    kind = getattr(torch.nn.parallel, WRAPPER)
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]


@contextlib.contextmanager
def nothing_sent_by_wrappers(torch: Any) -> Iterator[None]:
    """While a pass is run again on this rank alone: as within `no_sync`, and without the buffers of the first rank."""
    found = wrappers(torch) if are_several(torch) else []
    before = [distributed_seams.alone(wrapper) for wrapper in found]
    try:
        yield
    finally:
        for wrapper, state in zip(found, before):
            distributed_seams.together(wrapper, state)


def sent(torch: Any) -> Optional[int]:
    """How many collectives this process has begun, in all groups; None where that cannot be told or there is nobody."""
    return distributed_seams.collectives_begun(torch) if are_several(torch) else None


def backward(torch: Any, outputs: List[Any], gradients: Any, tensors: Iterable[Any]) -> None:
    """As autograd's own; among ranks for `tensors` alone, past the hooks on what is added to a parameter's gradient."""
    if not are_several(torch):
        torch.autograd.backward(outputs, gradients)
        return
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    for tensor, gradient in zip(wanted, torch.autograd.grad(outputs, wanted, gradients, allow_unused=True)):
        if gradient is not None:  # not in place: two parameters may be given the same one
            tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


def add(torch: Any, tensor: Any, gradient: Any) -> None:
    """To a leaf, as a backward pass does that was not broken off: among ranks it is sent by that."""
    if are_several(torch):
        torch.autograd.backward([tensor], [gradient])
    else:
        tensor.grad = gradient if tensor.grad is None else tensor.grad.add_(gradient)


@contextlib.contextmanager
def refusing_collectives(torch: Any) -> Iterator[None]:
    """Whatever is computed within is refused before it sends anything."""
    if not are_several(torch):
        yield
        return
    with _mode(torch)():
        yield


_made: List[Any] = []


def _mode(torch: Any) -> Any:
    if _made:
        return _made[0]
    kind: Any = distributed_seams.dispatch_mode(torch)

    class RefusesCollectives(kind):  # type: ignore[misc]
        def __torch_dispatch__(self, call: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if call.namespace in distributed_seams.COLLECTIVES:
                raise CannotSplit(TALKS)
            return call(*args, **(kwargs or {}))

    _made.append(RefusesCollectives)
    return RefusesCollectives
