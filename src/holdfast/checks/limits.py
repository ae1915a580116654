"""Limits of a process (ulimit) that a framework runs into: address space, data, open files, processes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.checks.contract import Here, Line, Status, ok, warn
from holdfast.probes.kernel_files import read, under, why
from holdfast.probes.tree import stat_of
from holdfast.units import amount

MIB, GIB = 1 << 20, 1 << 30
ROW = re.compile(r"^Max (?P<name>[a-z ]+?) {2,}(?P<soft>\S+) +\S+", re.MULTILINE)
ROOT = 0  # is not bound by the number of processes


# Below the first it is bad, below the second worth a look. Measured with CPU builds: `import tensorflow` takes 1.3 GiB of
# addresses and 0.3 GiB of data, `import torch` 0.65 and 0.23; the first CUDA call reserves tens of GiB of addresses.
SIZES = {
    "address space": (2 * GIB, 64 * GIB, "ulimit -v unlimited"),
    "data size": (512 * MIB, 4 * GIB, "ulimit -d unlimited"),
}
OPEN_FILES = (128, 1024)  # each DataLoader worker takes several, each tensor that is passed on one
PROCESSES_LEFT = (32, 256)  # threads count; TensorFlow starts a few for each core


def look(here: Here) -> Iterator[Line]:
    try:
        text = read(under(here.root, f"/proc/{here.pid}/limits")).decode("ascii", "replace")
    except OSError as error:
        yield warn("limits", f"the limits of a process cannot be read ({why(error)})", "mount /proc in this container")
        return
    soft = {row["name"]: int(row["soft"]) for row in ROW.finditer(text) if row["soft"].isdigit()}
    found = [*_sizes(soft), *_open_files(soft), *_processes(here, soft)]
    files = soft.get("open files")
    yield from found or [ok("limits", f"no limit of a process is tight ({files or 'unlimited'} open files)")]


def _sizes(soft: dict[str, int]) -> Iterator[Line]:
    for name, (too_little, little, command) in SIZES.items():
        limit = soft.get(name)
        if limit is not None and limit < little:
            text = f"a process may have {amount(limit, 'bytes')} of {name}; more is refused, however much is free"
            yield Line("limits", _status(limit, too_little), text, _how(command))


def _open_files(soft: dict[str, int]) -> Iterator[Line]:
    limit = soft.get("open files")
    if limit is not None and limit < OPEN_FILES[1]:
        text = f"a process may open {limit} files; data loaders and shared tensors take one each"
        yield Line("limits", _status(limit, OPEN_FILES[0]), text, _how("ulimit -n 65536"))


def _processes(here: Here, soft: dict[str, int]) -> Iterator[Line]:
    limit = soft.get("processes")
    if limit is None or here.uid == ROOT or here.job_runs:  # it may have started them itself
        return
    used = _threads_of(here)
    if limit - used < PROCESSES_LEFT[1]:
        text = f"this user has {used} of {limit} processes and threads that are allowed"
        yield Line("limits", _status(limit - used, PROCESSES_LEFT[0]), text, _how("ulimit -u unlimited"))


def _threads_of(here: Here) -> int:
    proc, count = under(here.root, "/proc"), 0
    for folder in Path(proc).iterdir():
        if not folder.name.isdigit():
            continue
        try:
            owner = os.stat(folder).st_uid
        except OSError:
            continue
        if owner == here.uid and (stat := stat_of(proc, int(folder.name))) is not None:
            count += stat.threads
    return count


def _status(value: int, too_little: int) -> Status:
    return "bad" if value < too_little else "warn"


def _how(command: str) -> str:
    return f"{command} in this shell; in Docker --ulimit, under Slurm the partition's limits, else /etc/security/limits.conf"
