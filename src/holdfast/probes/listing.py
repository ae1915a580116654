"""Every probe there is."""

from __future__ import annotations

from holdfast.probes.cgroup import Cgroup
from holdfast.probes.contract import Probe
from holdfast.probes.cpu_heat import CpuHeat
from holdfast.probes.disk import Disk
from holdfast.probes.framework import Framework
from holdfast.probes.gpu import Gpu
from holdfast.probes.heartbeat import Heartbeat
from holdfast.probes.host_memory import HostMemory
from holdfast.probes.kernel_log import KernelLog
from holdfast.probes.network import Network
from holdfast.probes.pressure import Pressure
from holdfast.probes.process_details import ProcessDetails
from holdfast.probes.processes import Processes
from holdfast.probes.run_queue import RunQueue
from holdfast.probes.shm import SharedMemory
from holdfast.probes.vmstat import Vmstat

# In this order they are read: what decides about memory first, what may be slow last.
PROBES: tuple[type[Probe], ...] = (
    KernelLog,
    HostMemory,
    Cgroup,
    Vmstat,
    Pressure,
    Processes,
    Heartbeat,
    SharedMemory,
    ProcessDetails,
    RunQueue,
    Framework,
    Network,
    CpuHeat,
    Disk,
    Gpu,
)


def all_probes() -> list[type[Probe]]:
    return list(PROBES)
