"""Free space in /dev/shm, through which data-loader workers pass their batches. Containers often have 64 MiB of it."""

from __future__ import annotations

import os

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, under, why
from holdfast.vocabulary import Sample


class SharedMemory:
    name = "shm"
    every_s = 0.0
    signals = ("shm.free_bytes", "shm.total_bytes")

    def __init__(self, scope: Scope) -> None:
        self._path = under(scope.root, "/dev/shm")
        try:
            os.statvfs(self._path)
        except OSError as error:
            raise Missing(why(error)) from None

    def read(self, now: float) -> list[Reading]:
        try:
            room = os.statvfs(self._path)
        except OSError as error:
            return list(missing(self.signals, now, why(error)))
        return [
            Sample("shm.free_bytes", room.f_bavail * room.f_frsize, now),
            Sample("shm.total_bytes", room.f_blocks * room.f_frsize, now),
        ]
