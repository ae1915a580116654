"""Memory and swap of the whole machine."""

from __future__ import annotations

from holdfast.inside.headroom import arcstats_path, host_memory
from holdfast.probes.contract import Reading, Scope
from holdfast.probes.kernel_files import missing, read, under, why
from holdfast.vocabulary import Sample


class HostMemory:
    name = "host_memory"
    every_s = 0.0
    signals = (
        "host.memory_total_bytes",
        "host.memory_available_bytes",
        "host.swap_total_bytes",
        "host.swap_free_bytes",
    )

    def __init__(self, scope: Scope) -> None:
        self._path = under(scope.root, "/proc/meminfo")
        self._arcstats = arcstats_path(under(scope.root, "/proc"))
        self._real = str(scope.root) == "/"

    def read(self, now: float) -> list[Reading]:
        try:
            found = host_memory(read(self._path), read(self._arcstats) if self._arcstats else b"")
        except OSError as error:
            return list(self._elsewhere(now) if self._real else missing(self.signals, now, why(error)))
        return [
            Sample(name, value, now, "" if value is not None else "not in /proc/meminfo")
            for name, value in zip(self.signals, found, strict=True)
        ]

    def _elsewhere(self, now: float) -> list[Sample]:
        import psutil  # noqa: PLC0415 -- only systems without /proc pay for it here

        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        values = (memory.total, memory.available, swap.total, swap.free)
        return [Sample(name, value, now) for name, value in zip(self.signals, values, strict=True)]
