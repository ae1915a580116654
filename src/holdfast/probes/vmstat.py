"""Counters of the kernel's memory management. Readable by every user, also where the kernel log is not."""

from __future__ import annotations

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, numbers, read, under, why
from holdfast.vocabulary import Sample

FIELDS = {
    "host.oom_kill_count": "oom_kill",
    "host.swap_in_count": "pswpin",
    "host.swap_out_count": "pswpout",
    "host.major_fault_count": "pgmajfault",
}


class Vmstat:
    name = "vmstat"
    every_s = 0.0
    signals = tuple(FIELDS)

    def __init__(self, scope: Scope) -> None:
        self._path = under(scope.root, "/proc/vmstat")
        try:
            read(self._path)
        except OSError as error:
            raise Missing(why(error)) from None

    def read(self, now: float) -> list[Reading]:
        try:
            found = numbers(read(self._path))
        except OSError as error:
            return list(missing(self.signals, now, why(error)))
        return [
            Sample(name, found.get(field), now, "" if field in found else f"this kernel does not count {field}")
            for name, field in FIELDS.items()
        ]
