"""Keeps Holdfast alive longer than the job: subreaper, low OOM score, pages locked in RAM.

Each is optional: where the kernel refuses, Holdfast runs without it. The script inherits none of it.
"""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 15, 36
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
M_ARENA_MAX = -8
OOM_SCORE_ADJ = -900  # of -1000 (never killed): the kernel takes nearly everything else first
_OOM_PATH = Path("/proc/self/oom_score_adj")


def become_subreaper() -> bool:
    """Orphaned descendants are then reparented to this process instead of init."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def take_name(name: str) -> None:
    """A name of its own for `ps` and `pkill`: a signal meant for the process the user started goes to that one only.

    The command line is overwritten where the kernel keeps it, as setproctitle does.
    """
    libc = ctypes.CDLL(None)
    prctl = getattr(libc, "prctl", None)
    if prctl is None:
        return
    prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    try:
        start, end = map(int, Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[45:47])
    except (OSError, ValueError):
        return
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name.encode(), min(len(name), end - start - 1))


def slim() -> None:
    """One heap for all threads: glibc's further arenas cost the watcher some MiB it never uses."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


def give_back_freed() -> None:
    """Returns memory freed during start-up to the kernel. Before locking: locked pages cannot be returned."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def lock_memory() -> bool:
    """Pages are locked as they are touched: plain MCL_CURRENT would pull in 20 MiB that is never used.

    Where RLIMIT_MEMLOCK is smaller than the process, the kernel refuses as a whole, and nothing has changed.
    """
    mlockall = getattr(ctypes.CDLL(None), "mlockall", None)
    return mlockall is not None and mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0


def lower_oom_score() -> str | None:
    """Returns the former value, for `restore_oom_score` in the script's process; None where nothing changed."""
    try:
        former = _OOM_PATH.read_text().strip()
        _OOM_PATH.write_text(str(OOM_SCORE_ADJ))
    except OSError:
        return None
    return former


def restore_oom_score(former: str | None) -> None:
    if former is not None:
        with contextlib.suppress(OSError):
            _OOM_PATH.write_text(former)
