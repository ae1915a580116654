"""Swap that is used already, or lies on a disk so slow that the machine freezes when it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.checks.contract import Here, Line, ok, warn
from holdfast.checks.samples import read_once
from holdfast.probes.disk import REMOTE
from holdfast.probes.host_memory import HostMemory
from holdfast.probes.kernel_files import read, under
from holdfast.probes.mounts import holding, mounts_of
from holdfast.units import amount

MUCH_RATIO = 0.5
MUCH_BYTES = 1 << 30
# Virtual disks call themselves spinning whatever they lie on; only these names are of disks with a plug.
WITH_A_PLUG = re.compile(r"(sd|hd)[a-z]+\d*")
VIRTUAL = re.compile(r"qemu|virtual|vbox|persistentdisk|msft", re.IGNORECASE)


def look(here: Here) -> Iterator[Line]:
    found = read_once(HostMemory, here)
    total, free = found["host.swap_total_bytes"], found["host.swap_free_bytes"]
    if not total or free is None:
        yield ok("swap", "no swap: when memory ends a process is killed, and nothing gets slow before")
        return
    slow = [f"{area} lies on {where}" for area in _areas(here.root) if (where := _slow_place(here, area))]
    used = total - free
    text = f"{amount(used, 'bytes')} of {amount(total, 'bytes')} swap are used"
    if used > MUCH_RATIO * total and used > MUCH_BYTES:
        fix = "end what was swapped out, or give this machine more memory; what comes back from swap is slow"
        yield warn("swap", text, fix)
    elif slow:
        fix = f"sudo swapoff {slow[0].split()[0]}; use zram or an SSD instead"
        yield warn("swap", f"{slow[0]}: the machine stands still once memory is full", fix)
    else:
        yield ok("swap", text)


def _areas(root: Path) -> list[str]:
    try:
        lines = read(under(root, "/proc/swaps")).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.split()[0].replace("\\040", " ") for line in lines[1:] if line.split()]


def _slow_place(here: Here, area: str) -> str:
    """Empty for what is not known to be slow: compressed memory, SSDs, virtual disks."""
    try:
        mount = holding(area, mounts_of(under(here.root, "/proc"), here.pid))
    except OSError:
        mount = None
    if area.startswith("/dev/"):
        return "a spinning disk" if _spins(here.root, area.rpartition("/")[2]) else ""
    if mount is None:
        return ""
    if mount.kind.startswith(REMOTE):
        return f"a network file system ({mount.kind})"
    device = Path(under(here.root, f"/sys/dev/block/{mount.device}"))
    return "a spinning disk" if _spins(here.root, device.resolve().name) else ""


def _spins(root: Path, name: str) -> bool:
    if not WITH_A_PLUG.fullmatch(name):
        return False
    disk = name.rstrip("0123456789")
    about = Path(under(root, f"/sys/block/{disk}"))
    if VIRTUAL.search(_word(about / "device/model") + _word(about / "device/vendor")):
        return False
    return _word(about / "queue/rotational") == "1"


def _word(path: Path) -> str:
    try:
        return read(str(path)).decode("utf-8", "replace").strip()
    except OSError:
        return ""
