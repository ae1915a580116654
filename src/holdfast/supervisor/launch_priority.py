"""Lower CPU and I/O priority for the job where a person sits at the machine.

Only where there is one. Elsewhere a job would lose to its neighbours and nobody would gain. Alone on the machine it is as
fast as before: these weigh only against others who want the same at the same time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.supervisor.launch_context import at_a_terminal, in_a_container, scheduler
from holdfast.vocabulary import Policy

NICE = 5  # the kernel's weight is 335, against 1024 for nice 0
IO_LEVEL = 6  # of 0 to 7 among the usual ones, where 4 is the usual
IO_NONE, IO_USUAL = 0, 2
IO_SHIFT, WHO_PROCESS = 13, 1
IO_CALLS = {"x86_64": (251, 252), "aarch64": (30, 31), "ppc64le": (273, 274), "riscv64": (30, 31)}  # set, get


def lowers_priority(policy: Policy, environment: Mapping[str, str]) -> bool:
    return (
        policy == Policy.PROTECT and at_a_terminal() and not scheduler(environment) and not in_a_container(environment)
    )


def give_way() -> None:
    """In the script's process before it is the script's; all that it starts inherits it. What the user chose stays."""
    with contextlib.suppress(OSError):
        if os.getpriority(os.PRIO_PROCESS, 0) == 0:
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
            # The kernel weighs whole sessions against each other first, and the job has one of its own.
            if _session_nice("self") == 0:
                Path("/proc/self/autogroup").write_text(str(NICE))
    level = _io("self")
    if level is not None and level in ((IO_NONE, 0), (IO_NONE, 4), (IO_USUAL, 4)):  # from 5.14 to 5.18 none reads as 4
        _io_call(0, WHO_PROCESS, 0, IO_USUAL << IO_SHIFT | IO_LEVEL)


def turn_of(pid: int) -> dict[str, int | None]:
    """The present priorities, for the journal."""
    nice = None
    with contextlib.suppress(OSError):
        nice = os.getpriority(os.PRIO_PROCESS, pid)
    io = _io(str(pid))
    return {"nice": nice, "session_nice": _session_nice(str(pid)), "io_level": io[1] if io and io[0] else None}


def _session_nice(pid: str) -> int | None:
    """`/autogroup-123 nice 0`, where the kernel has them."""
    try:
        return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def _io(pid: str) -> tuple[int, int] | None:
    """Class and level."""
    value = _io_call(1, WHO_PROCESS, 0 if pid == "self" else int(pid))
    return None if value < 0 else (value >> IO_SHIFT, value & 7)


def _io_call(which: int, *arguments: int) -> int:
    calls = IO_CALLS.get(os.uname().machine)
    if calls is None:
        return -1
    return int(ctypes.CDLL(None, use_errno=True).syscall(calls[which], *arguments))
