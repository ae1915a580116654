"""What a process holds: anonymous and shared memory. The one definition, for every part that asks.

Pages of mapped files (libraries, memory-mapped data) are the page cache's: the kernel drops them when memory is needed,
and no container is out of memory because of them. About 330 MiB of an imported TensorFlow are such pages. Shared memory
(/dev/shm, batches handed over by loader workers) is held: without swap it stays until it is freed.
"""

from __future__ import annotations

from typing import Optional

from .headroom import field


def held_bytes(status: bytes) -> Optional[int]:
    """Of one process, by /proc/PID/status; None for one that has ended."""
    resident = field(status, b"VmRSS:")
    return None if resident is None else max(0, resident - (file_bytes(status) or 0))


def file_bytes(status: bytes) -> Optional[int]:
    """Resident pages of mapped files; None before Linux 4.5, which does not tell them apart."""
    return field(status, b"RssFile:")


def held_share_bytes(smaps_rollup: bytes) -> Optional[int]:
    """Of a process among several, by /proc/PID/smaps_rollup: a page that n of them share counts for 1/n.

    None where the kernel does not say (before Linux 5.4).
    """
    anonymous, shared = field(smaps_rollup, b"Pss_Anon:"), field(smaps_rollup, b"Pss_Shmem:")
    return None if anonymous is None or shared is None else anonymous + shared


def held_by_this_process() -> int:
    return held_bytes(status_of_this_process()) or 0


def status_of_this_process() -> bytes:
    """Empty where it cannot be read."""
    try:
        with open("/proc/self/status", "rb") as file:
            return file.read()
    except OSError:
        return b""


def reset_peak() -> Optional[int]:
    """Sets the kernel's mark of the most that was held to what is held now; None where that is not allowed."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return None
    return peak_bytes()


def peak_bytes() -> Optional[int]:
    """The most that was held since, mapped files included."""
    return field(status_of_this_process(), b"VmHWM:")
