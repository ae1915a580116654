"""Whether the kernel's log can be read: it says who was killed for memory, and what became of a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.checks.contract import Here, Line, ok, warn
from holdfast.checks.samples import scope_of
from holdfast.probes import Missing
from holdfast.probes.kernel_log import KernelLog


def look(here: Here) -> Iterator[Line]:
    here.asked("/dev/kmsg")
    try:
        KernelLog(scope_of(here)).close()
    except Missing as reason:
        text = f"{reason}: a kill for memory is then told by counters, with less confidence"
        yield warn("kernel-log", text, "sudo sysctl kernel.dmesg_restrict=0; in Docker --device=/dev/kmsg")
    else:
        yield ok("kernel-log", "the kernel log can be read")
