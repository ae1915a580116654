"""Every probe there is. A new one is its file and a line here."""

from __future__ import annotations

from importlib import import_module

from holdfast.probes.contract import Probe

# File and class, in the order in which they are read: what decides about memory first, what may be slow last.
LISTING = (
    "kernel_log.KernelLog",
    "host_memory.HostMemory",
    "cgroup.Cgroup",
    "vmstat.Vmstat",
    "pressure.Pressure",
    "processes.Processes",
    "machine.Machine",
    "shm.SharedMemory",
    "process_details.ProcessDetails",
    "run_queue.RunQueue",
    "framework.Framework",
    "network.Network",
    "cpu_heat.CpuHeat",
    "disk.Disk",
    "gpu.Gpu",
)


def _probe(place: str) -> type[Probe]:
    module, _, name = place.partition(".")
    found: type[Probe] = getattr(import_module(f"holdfast.probes.{module}"), name)
    return found


PROBES: tuple[type[Probe], ...] = tuple(map(_probe, LISTING))
