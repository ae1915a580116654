"""Is this machine fit to train: one topic a file, each listed here, in the order in which they are shown."""

from __future__ import annotations

from holdfast.checks import (
    control_groups,
    disk_speed,
    disks,
    frameworks,
    gpu,
    kernel_log,
    limits,
    memory,
    processors,
    shared_memory,
    swap,
)
from holdfast.checks.contract import Check

WEDGED = "if nvidia-smi hangs, too, reboot; if it is only slow, sudo nvidia-smi -pm 1 keeps the driver awake"
DEAD_MOUNT = "a dead mount? `umount -l` it, or run elsewhere"
BUSY = "try again when the machine is less busy"

CHECKS = (
    Check("memory", memory.look, "warn", BUSY, beside_a_run=False),
    Check("swap", swap.look, "warn", BUSY, beside_a_run=False),
    Check("limits", limits.look, "warn", BUSY),
    Check("cgroup-memory", control_groups.look, "warn", BUSY, beside_a_run=False),
    Check("shm", shared_memory.look, "warn", BUSY, beside_a_run=False),  # a script without workers needs none
    Check("disk-space", disks.look, "bad", DEAD_MOUNT),
    Check("disk-speed", disk_speed.look, "warn", DEAD_MOUNT, beside_a_run=False),
    Check("cpu-threads", processors.look, "warn", BUSY),
    Check("kernel-log", kernel_log.look, "warn", BUSY),
    Check("gpu-driver", gpu.look, "warn", WEDGED),
    Check("frameworks", frameworks.look, "warn", BUSY, beside_a_run=False),
)
