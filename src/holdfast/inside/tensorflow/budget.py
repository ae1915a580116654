"""Limits that TensorFlow enforces itself: on the CPU the kernel's kill becomes a ResourceExhaustedError, a card is shared.

TensorFlow reads its limits when its first operation makes the allocators, which is after its import: so they are set then.

Host: less what the process holds by then, NumPy's arrays included but not the libraries it maps: those pages are the page
cache's, about 330 MiB of TensorFlow's, and its container is charged for none of them. With oneDNN, the default on x86, the
allocator is the one that is there anyway and only its limit changes (results and speed stay); without it TensorFlow calls
malloc, and the switch to an allocator with a limit is made only because a budget cannot be had otherwise.

An attempt that begins in pieces, since memory ran out before, and has no budget: TensorFlow's own allocator never gives a page
back, and what it holds in between depends on the order in which operations happened to end. With malloc, and each large
tensor in a mapping of its own, a step takes what it holds: a table of 366 MiB with momentum stayed at 1.9 GiB instead of
2.6 GiB after three steps. Memory that is asked for anew must be cleared anew, so no other run is changed.

GPU: as a limit of the one logical device that each card has anyway, which goes beside memory growth; a limit of the user's
own stays where it is the lower one.
"""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any, NamedTuple, Optional

from ..held_memory import held_by_this_process
from ..never_raise import guarded
from ..settings import rescue_wanted
from ..telemetry import Recorder
from . import nvml, seams

LEAST = 16 << 20  # TensorFlow starts with that
MIB = 1 << 20
SYSTEM_ALLOCATOR = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"  # read with the first allocation
M_MMAP_THRESHOLD, OWN_MAPPING_BYTES = -3, 1 << 20  # of mallopt(3): from this size on memory goes back when it is freed
OURS = ("TF_MKL_ALLOC_MAX_BYTES", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")


class Limit(NamedTuple):
    bytes: int
    of: str  # budget or card


_card: list[Limit] = []  # of the first card, once TensorFlow has made it


def card_limit() -> Optional[Limit]:
    """What TensorFlow may take of the card; None where that is not known."""
    return _card[0] if _card else None


def limit_allocators(recorder: Recorder) -> None:
    if not rescue_wanted(recorder.settings):
        return
    settings = recorder.settings["rescue"]
    host, gpu, k = (int(settings.get(name) or 0) for name in ("host_budget_bytes", "gpu_budget_bytes", "k"))
    context: Any = seams.context_module().Context
    original = context.ensure_initialized
    limit_host, limit_cards, look_at_card = guarded(_limit_host), guarded(_limit_cards), guarded(_look_at_card)
    give_pages_back = guarded(_give_pages_back)

    def ensure_initialized(self: Any) -> Any:
        if not seams.is_initialized(self):
            context.ensure_initialized = original
            if host:
                limit_host(recorder, host)
            elif k > 1:
                give_pages_back(self)
            if gpu:
                limit_cards(recorder, self, gpu)
            look_at_card(self, gpu)
        return original(self)

    context.ensure_initialized = ensure_initialized


def _limit_host(recorder: Recorder, budget: int) -> None:
    theirs = [name for name in OURS if name in os.environ]
    if theirs:
        recorder.event("memory.budget_not_held", where="host", reason=f"the script has a limit of its own, {theirs[0]}")
        return
    held = held_by_this_process()
    limit = max(LEAST, budget - held)
    for name, value in _words(limit).items():
        os.environ[name] = value
    recorder.event("memory.budget", budget_bytes=budget, held_bytes=held, limit_bytes=limit, where="host")
    if held + LEAST > budget:
        reason = f"the process held {held // MIB} MiB before TensorFlow's first operation"
        recorder.event("memory.budget_not_held", where="host", reason=reason)


def _give_pages_back(context: Any) -> None:
    if _has_onednn() and not context.list_physical_devices("GPU") and SYSTEM_ALLOCATOR not in os.environ:
        ctypes.CDLL(None).mallopt(
            M_MMAP_THRESHOLD, OWN_MAPPING_BYTES
        )  # another libc has none, and then nothing is changed
        os.environ[SYSTEM_ALLOCATOR] = "1"


def pages_are_given_back() -> bool:
    """TensorFlow counts nothing then: what the process holds says it."""
    return os.environ.get(SYSTEM_ALLOCATOR, "").lower() in ("1", "true")


def _limit_cards(recorder: Recorder, context: Any, budget: int) -> None:
    """For this context only: its options are computed when it starts."""
    if not context.list_physical_devices("GPU"):
        return
    compute = seams.gpu_options_of(context)
    if compute is None:
        reason = "this TensorFlow makes the options of its GPUs elsewhere"
        recorder.event("memory.budget_not_held", where="gpu", reason=reason)
        return

    def with_limit() -> Any:
        options = compute()
        devices = options.experimental.virtual_devices
        if not devices:
            count = len(context.get_visible_devices("GPU"))
            for _ in range(count):
                devices.add(memory_limit_mb=[budget // MIB])
        for device in devices:
            limits = [min(limit, budget // MIB) if limit else budget // MIB for limit in device.memory_limit_mb]
            device.memory_limit_mb[:] = limits or [budget // MIB]
        return options

    seams.put_gpu_options(context, with_limit)
    recorder.event("memory.budget", budget_bytes=budget, held_bytes=0, limit_bytes=budget, where="gpu")


def _look_at_card(context: Any, budget: int) -> None:
    """Before TensorFlow takes it: afterwards all of it is in use."""
    cards = context.get_visible_devices("GPU")
    if not cards:
        return
    limits = [budget] if budget else []
    logical = context.get_logical_device_configuration(cards[0])
    if logical and logical[0].memory_limit:
        limits.append(int(logical[0].memory_limit) * MIB)
    free = nvml.free_bytes()
    if free is not None:
        limits.append(free)
    if limits:
        _card[:] = [Limit(min(limits), "budget" if budget and budget <= min(limits) else "card")]


def _words(limit: int) -> dict[str, str]:
    if _has_onednn():
        return {"TF_MKL_ALLOC_MAX_BYTES": str(limit)}
    return {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit >> 20)}


def _has_onednn() -> bool:
    return platform.machine() in ("x86_64", "AMD64") and os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1") != "0"
