"""Which machine this is, how long it has been up, and its load."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.probes.contract import Reading, Scope
from holdfast.probes.kernel_files import pid_namespace, read, under, why
from holdfast.vocabulary import Event, Sample


def boot_id(root: Path = Path("/")) -> str | None:
    """Changes with every boot: two different readings mean that the machine went down in between."""
    try:
        return read(under(root, "/proc/sys/kernel/random/boot_id")).decode("ascii", "replace").strip() or None
    except OSError:
        return None


class Machine:
    name = "heartbeat"
    every_s = 0.5
    signals = ("host.uptime_s", "host.load_ratio")

    def __init__(self, scope: Scope) -> None:
        self._root = scope.root
        self._cores = os.cpu_count() or 1
        self._introduced = False

    def read(self, now: float) -> list[Reading]:
        readings: list[Reading] = []
        if not self._introduced:
            self._introduced = True
            readings.append(self._machine(now))
        readings.append(self._first_number("host.uptime_s", "/proc/uptime", now))
        readings.append(self._first_number("host.load_ratio", "/proc/loadavg", now, 1 / self._cores))
        return readings

    def _machine(self, now: float) -> Event:
        system = os.uname()
        about = {
            "boot_id": boot_id(self._root),
            "kernel": system.release,
            "hostname": system.nodename,
            "cores": self._cores,
            "system": system.sysname,
            "pid_namespace": pid_namespace(self._root),
        }
        return Event("machine", now, about)

    def _first_number(self, name: str, path: str, now: float, scale: float = 1.0) -> Sample:
        try:
            return Sample(name, float(read(under(self._root, path)).split(None, 1)[0]) * scale, now)
        except OSError as error:
            return Sample(name, None, now, why(error))
        except (ValueError, IndexError):
            return Sample(name, None, now, f"{path} holds no number")
