"""Memory of the machine, and what the kernel has promised of it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.checks.samples import read_once
from holdfast.probes.host_memory import HostMemory
from holdfast.probes.kernel_files import numbers, read, under
from holdfast.units import amount

MIB, GIB = 1 << 20, 1 << 30
TOO_LITTLE_BYTES = 128 * MIB  # `import torch` holds 220 MiB, `import tensorflow` 620
LITTLE_BYTES = 2 * GIB
PROMISES_AT_MOST = "2"  # of vm.overcommit_memory: nothing beyond the limit is promised


def look(here: Here) -> Iterator[Line]:
    yield from _available(here)
    yield from _promised(here)


def _available(here: Here) -> Iterator[Line]:
    found = read_once(HostMemory, here)
    available, total = found["host.memory_available_bytes"], found["host.memory_total_bytes"]
    if available is None or total is None:
        yield warn("memory", "how much memory is available cannot be read", "mount /proc in this container")
        return
    text = f"{amount(available, 'bytes')} of {amount(total, 'bytes')} RAM are available"
    fix = "end what holds it: `ps aux --sort=-rss | head` names it"
    if available < TOO_LITTLE_BYTES:
        yield bad("memory", text, fix)
    elif available < LITTLE_BYTES:
        yield warn("memory", text, fix)
    else:
        yield ok("memory", text)


def _promised(here: Here) -> Iterator[Line]:
    """Where the kernel promises no more than it has, a process is refused memory that is not even in use."""
    try:
        mode = read(under(here.root, "/proc/sys/vm/overcommit_memory")).decode("ascii", "replace").strip()
        found = numbers(read(under(here.root, "/proc/meminfo")))
        left = found["CommitLimit"] - found["Committed_AS"]
    except (OSError, KeyError):
        return
    if mode != PROMISES_AT_MOST:
        yield ok("overcommit", f"vm.overcommit_memory is {mode}: memory that is only reserved counts for nothing")
        return
    text = (
        f"vm.overcommit_memory is 2, and {amount(max(0, left), 'bytes')} of {amount(found['CommitLimit'], 'bytes')} "
        "can still be promised: frameworks reserve far more than they use"
    )
    fix = "sudo sysctl vm.overcommit_memory=0"
    if left < 2 * TOO_LITTLE_BYTES:
        yield bad("overcommit", text, fix)
    elif left < 2 * LITTLE_BYTES:
        yield warn("overcommit", text, fix)
    else:
        yield ok("overcommit", text)
