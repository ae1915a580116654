"""State around a piece of a batch that is run again: random numbers, half precision, what a module keeps for itself."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Tuple

from ..rescue_engine import CannotSplit
from . import seams
from .tensor_nests import PLAIN


def random_state(torch: Any) -> List[Any]:
    state = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        state.append(torch.cuda.get_rng_state())
    return state


def set_random_state(torch: Any, state: List[Any]) -> None:
    torch.set_rng_state(state[0])
    if len(state) > 1:
        torch.cuda.set_rng_state(state[1])


def autocasts(torch: Any) -> List[Tuple[str, bool, Any]]:
    """(device, whether it computes in half precision, which)."""
    if hasattr(torch, "get_autocast_dtype"):
        return [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")]
    return [
        ("cpu", torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()),
        ("cuda", torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()),
    ]


@contextlib.contextmanager
def casting(torch: Any, wanted: List[Tuple[str, bool, Any]]) -> Iterator[None]:
    """As it was at the call; no weights are kept cast from one piece to the next, each has a graph of its own."""
    with contextlib.ExitStack() as stack:
        for (kind, enabled, dtype), (_, now, _) in zip(wanted, autocasts(torch)):
            if enabled or now:
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False))
        yield


@contextlib.contextmanager
def uncached(torch: Any) -> Iterator[None]:
    """A weight cast without gradients must not be found by a later call that wants them."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def kept_by(module: Any) -> dict[str, Tuple[str, Any]]:
    """What a module holds beside parameters, buffers and modules, by name: which object, or how large it is."""
    kept: dict[str, Tuple[str, Any]] = {}
    for name, one in module.named_modules():
        for key, value in vars(one).items():
            if key in seams.MODULE_PARTS:
                continue
            mark: Tuple[str, Any] = ("object", value)
            if isinstance(value, (list, dict, set)):
                mark = ("size", (id(value), len(value)))
            elif isinstance(value, PLAIN):
                mark = ("value", value)
            kept[f"{name}.{key}".lstrip(".")] = mark
    return kept


def refuse_what_it_keeps(before: dict[str, Tuple[str, Any]], after: dict[str, Tuple[str, Any]]) -> None:
    """Of a forward pass: in pieces it would be the last one's, and without a graph."""
    for name, (kind, value) in after.items():
        was_kind, was = before.get(name, ("", None))
        same = kind == was_kind and (was is value if kind == "object" else was == value)
        if not same:
            raise CannotSplit(f"it keeps something of each forward pass: {name}")
