"""The most that this process has held, by the kernel's own mark."""

from __future__ import annotations


def begin_of_peak() -> int:
    """Sets the mark to what is held now and returns it; 0 where it may not be set."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return 0
    return peak()


def peak() -> int:
    """Since the last reset; 0 where it is not told."""
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return 0
