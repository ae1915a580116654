"""Attributes that the modules of a model hold beside parameters and buffers, put back after a call that is made once more."""

from __future__ import annotations

import collections
import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, Optional

from ..script_state.object_graph import is_users
from . import seams

LARGEST_BYTES = 64 << 20  # of a tensor or an array that is copied
MOST_ITEMS = 100_000  # of a container

PutBack = Callable[[], object]


@contextlib.contextmanager
def attributes_put_back(model: Any) -> Iterator[None]:
    """Each has the value it had; containers, tensors, arrays and objects of the script's classes their content. What those hold is
    not looked into."""
    owns = [vars(module) for module in model.modules()]
    before = [dict(own) for own in owns]
    contents = [_content_of(value) for own in before for name, value in own.items() if name not in _of_every_module()]
    try:
        yield
    finally:
        for own, values in zip(owns, before):
            for name in [name for name in own if name not in values]:
                del own[name]
            own.update(values)
        for put_back in contents:
            if put_back is not None:
                put_back()


_names: Dict[str, None] = {}


def _of_every_module() -> Dict[str, None]:
    """What PyTorch keeps there: parameters, buffers, hooks."""
    if not _names:
        _names.update(dict.fromkeys(vars(sys.modules["torch"].nn.Module())))
    return _names


def _content_of(value: Any) -> Optional[PutBack]:
    """A function that puts it back; None where it has none that can change, or too much."""
    kind = type(value)
    if kind in (list, set, dict, collections.deque, collections.OrderedDict) and len(value) <= MOST_ITEMS:
        return _of_container(value)
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if isinstance(value, (torch.nn.Module, type)):
        return None
    if isinstance(value, torch.Tensor) and value.nbytes <= LARGEST_BYTES and not value.is_inference():
        return _of_tensor(torch, value)
    if is_users(kind) and hasattr(value, "__dict__"):
        return _of_container(vars(value))
    if numpy is not None and kind is numpy.ndarray and value.nbytes <= LARGEST_BYTES and value.flags.writeable:
        copy = value.copy()
        return lambda: numpy.copyto(value, copy)
    return None


def _of_container(value: Any) -> PutBack:
    copy: Any = value.copy()

    def put_back() -> None:
        if isinstance(value, list):
            value[:] = copy
            return
        value.clear()
        value.extend(copy) if isinstance(value, collections.deque) else value.update(copy)

    return put_back


def _of_tensor(torch: Any, value: Any) -> PutBack:
    copy, version = value.detach().clone(), seams.version_of(value)

    def put_back() -> None:
        if seams.version_of(value) != version:
            with torch.no_grad(), seams.versions_kept(torch, [value]):
                value.copy_(copy)

    return put_back
