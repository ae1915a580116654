"""Groups of the job's own, below the one we are in and never outside it: so a scheduler's limits keep holding.

Version 1: memory, cpu and freezer each have a tree. Version 2: one group, with the controllers that are handed down.
Where no group can be made the job is a little nicer than others, and that is all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "holdfast-job-"
OURS = "holdfast-keepers"
NICER = 3  # about half the weight of others
LATER = 7  # the last of the eight levels of ordinary disk access
IOPRIO_SET, IOPRIO_CLASS_BEST_EFFORT, CLASS_SHIFT = 251, 2, 13  # of x86-64; elsewhere left alone
WEIGHT = 50  # version 2, of the usual 100
SHARES_PER_CPU = 512  # version 1, of the usual 1024: the kernel divides a group's shares among the processors
REMOVAL_S = 1.0
OLD_S = 60.0  # younger ones may be about to be entered


@dataclass(frozen=True, slots=True)
class Groups:
    """`folders` by controller; in version 2 all are the same one."""

    version: int = 0
    folders: Mapping[str, str] = field(default_factory=dict)


def make_groups(version: int, parents: Mapping[str, str], name: str, ours: Iterable[int]) -> Groups:
    """`parents` by controller are the groups we are in. What cannot be had is left out."""
    for parent in dict.fromkeys(parents.values()):
        _sweep(parent)
    if version == 2:
        return _make_v2(parents, name, set(ours))
    folders = {}
    for controller, parent in parents.items():
        folder = f"{parent}/{PREFIX}{name}"
        with contextlib.suppress(OSError):
            os.mkdir(folder)  # noqa: PTH102
            folders[controller] = folder
    if "cpu" in folders:
        _write(f"{folders['cpu']}/cpu.shares", str(SHARES_PER_CPU * (os.cpu_count() or 1)))
    if "blkio" in folders:
        _write(f"{folders['blkio']}/blkio.bfq.weight", str(WEIGHT))
    return Groups(1, folders) if folders else Groups()


def _make_v2(parents: Mapping[str, str], name: str, ours: set[int]) -> Groups:
    parent = next(iter(parents.values()), "")
    if not parent:
        return Groups()
    folder = f"{parent}/{PREFIX}{name}"
    try:
        os.mkdir(folder)  # noqa: PTH102
    except OSError:
        return Groups()
    handed_down = _hand_down(parent, ours)
    _write(f"{folder}/cpu.weight", str(WEIGHT))
    _write(f"{folder}/io.weight", str(WEIGHT))
    found: dict[str, str] = {controller: folder for controller in ("memory", "cpu", "io") if controller in handed_down}
    if os.path.exists(f"{folder}/cgroup.freeze"):  # noqa: PTH110 - from Linux 5.2, and needs no controller
        found["freezer"] = folder
    return Groups(2, found) if found else Groups()


def _hand_down(parent: str, ours: set[int]) -> set[str]:
    """A group that holds processes may hand nothing down. Where all of them are ours they step aside into a leaf."""
    wanted = {"memory", "cpu", "io"} & set(_read(f"{parent}/cgroup.controllers").split())
    missing = wanted - set(_read(f"{parent}/cgroup.subtree_control").split())
    refused = [one for one in missing if not _write(f"{parent}/cgroup.subtree_control", f"+{one}")]
    there = {int(pid) for pid in _read(f"{parent}/cgroup.procs").split()}
    if refused and there and there <= ours:
        leaf = f"{parent}/{OURS}"
        with contextlib.suppress(OSError):
            os.makedirs(leaf, exist_ok=True)  # noqa: PTH103
            for pid in there:
                _write(f"{leaf}/cgroup.procs", str(pid))
            for one in refused:
                _write(f"{parent}/cgroup.subtree_control", f"+{one}")
    return wanted & set(_read(f"{parent}/cgroup.subtree_control").split())


def find_groups(version: int, parents: Mapping[str, str], name: str) -> Groups:
    folders = {controller: f"{parent}/{PREFIX}{name}" for controller, parent in parents.items()}
    return Groups(version, {c: folder for c, folder in folders.items() if os.path.isdir(folder)})  # noqa: PTH112


def enter(groups: Groups) -> None:
    """In the job's first process, before it becomes the user's program. What it starts comes along."""
    for folder in dict.fromkeys(groups.folders.values()):
        _write(f"{folder}/cgroup.procs", "0")
    if "cpu" not in groups.folders:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + NICER)
    if os.uname().machine == "x86_64":
        syscall = getattr(ctypes.CDLL(None), "syscall", None)
        if syscall is not None:
            syscall(IOPRIO_SET, 1, 0, IOPRIO_CLASS_BEST_EFFORT << CLASS_SHIFT | LATER)


def remove_groups(groups: Groups, patience_s: float = REMOVAL_S) -> bool:
    """The kernel lets go of a group a moment after its last process is gone."""
    until = time.monotonic() + patience_s
    folders = set(groups.folders.values())
    while folders:
        folders = {folder for folder in folders if not _removed(folder)}
        if not folders or time.monotonic() > until:
            break
        time.sleep(0.01)
    if groups.version == 2:
        for folder in set(groups.folders.values()):
            _step_back(os.path.dirname(folder))  # noqa: PTH120
    return not folders


def _step_back(parent: str) -> None:
    """Where we had stepped aside: the group is left as it was found."""
    leaf = f"{parent}/{OURS}"
    if not os.path.isdir(leaf):  # noqa: PTH112
        return
    for one in _read(f"{parent}/cgroup.subtree_control").split():
        _write(f"{parent}/cgroup.subtree_control", f"-{one}")
    for pid in _read(f"{leaf}/cgroup.procs").split():
        _write(f"{parent}/cgroup.procs", pid)
    _removed(leaf)


def process_name(pid: int) -> str:
    """Its number and its start: the number alone is used again, and in another container at the same time."""
    return f"{pid}-{_started(pid)}"


def _started(pid: int) -> str:
    words = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return words[19] if len(words) > 19 else "0"


def _sweep(parent: str) -> None:
    """Groups of runs whose Holdfast was killed, and that are empty."""
    with contextlib.suppress(OSError):
        for folder in Path(parent).glob(f"{PREFIX}*"):
            pid, _, started = folder.name.removeprefix(PREFIX).partition("-")
            alive = pid.isdigit() and started == _started(int(pid))
            if not alive and time.time() - folder.stat().st_mtime > OLD_S:
                _removed(str(folder))


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)  # noqa: PTH106
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _write(path: str, text: str) -> bool:
    try:
        Path(path).write_text(text)
    except OSError:
        return False
    return True
