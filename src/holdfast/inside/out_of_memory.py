"""Running out of memory: known when it is seen, and memory given back afterwards."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import traceback
from typing import Any, Callable, List, Optional, Tuple

from .never_raise import outcome
from .user_errors import passing

# What frameworks say where the type alone does not: other call sites, older versions.
SAYS_SO = re.compile(
    r"out of memory|OOM when allocating|failed to allocate|unable to allocate|can't allocate memory"
    r"|cannot allocate memory|not enough memory|RESOURCE_EXHAUSTED",
    re.IGNORECASE,
)
SOMETHING_ELSE = re.compile(r"too many open files|no space left|quota|larger than max|message.*size", re.IGNORECASE)
GPU = re.compile(r"\b(GPU|CUDA|HIP|XPU)\b|GPU:\d|GPU_\d", re.IGNORECASE)
BYTES = re.compile(r"allocate ([\d.]+) ?(bytes|[KMGT]i?B)", re.IGNORECASE)
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
REQUEST = re.compile(r"shape\[[\d,]*\][^\n]{0,40}|tried to allocate [\d.]+ ?\w+|allocate \d+ bytes", re.IGNORECASE)


def is_out_of_memory(error: BaseException) -> bool:
    """By type first, then by text: the same failure comes as another type from another call site."""
    if isinstance(error, MemoryError):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    if "OutOfMemoryError" in names:  # PyTorch
        return True
    if "ResourceExhaustedError" in names:  # TensorFlow also says so of queues and files
        return not SOMETHING_ELSE.search(str(error))
    if names & {"InternalError", "RuntimeError", "AcceleratorError", "XlaRuntimeError", "JaxRuntimeError"}:
        return bool(SAYS_SO.search(str(error)))
    return False


def attempt(call: Callable[..., Any], *args: Any) -> Tuple[Any, Optional[BaseException]]:
    """What a call returns, or else the error by which memory ran out in it. Any other error goes on as it came."""
    result, error = outcome(call, *args)
    if error is not None and not is_out_of_memory(error):
        with passing:
            raise error
    return result, error


def wanted(error: BaseException) -> str:
    """What could not be had, in the framework's words."""
    found = REQUEST.search(str(error))
    return found.group(0) if found else str(error).strip().split("\n")[0][:120]


def wanted_bytes(error: BaseException) -> Optional[int]:
    """What could not be had at once; XLA asks for all that a step works in with one request."""
    found = BYTES.search(str(error))
    if found is None:
        return None
    return int(float(found.group(1)) * UNITS.get(found.group(2)[:1].upper(), 1))


def ran_out_on(error: BaseException) -> str:
    """`gpu` or `host`."""
    return "gpu" if GPU.search(str(error)) else "host"


def tell_caught(recorder: Any, where: str, k: int, error: BaseException, device: Optional[str] = None) -> None:
    """To the record: what the verdict of a rescued run rests on. `device` is `gpu` or `host` where that is known: XLA's
    message names none."""
    recorder.event(
        "rescue.caught", step=recorder.steps + 1, where=where, k=k, of=device or ran_out_on(error), wanted=wanted(error)
    )


def forget(error: Optional[BaseException]) -> None:
    """Lets go of the frames of a failed call: they hold its tensors."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if error.__traceback__ is not None:
            traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def give_back() -> List[str]:
    """To the system, as far as it can be had: glibc and the frameworks' caches keep what was freed. Returns what was done."""
    gc.collect()
    done = ["collected"]
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():  # a process without CUDA is left without
        cuda.empty_cache()
        done.append("GPU cache emptied")
    try:
        if ctypes.CDLL(None).malloc_trim(0):
            done.append("trimmed")
    except (AttributeError, OSError):  # another libc
        pass
    return done
