"""Groups of the job's own, below the one we are in and never outside it: so a scheduler's limits keep holding.

Version 1: memory and freezer each have a tree. Version 2: one group, with memory where it is handed down; where it cannot
be, `systemd_scope` may have another group made. The job's share of processors and disks stays what it was.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.vocabulary import JOB_GROUP_PREFIX

OURS = "holdfast-keepers"
HANDED_DOWN = "memory"  # in version 2, to the job's own group
REMOVAL_S = 1.0
ROUNDS = 5  # a shell has forked its first command within the time it takes
OLD_S = 60.0  # younger ones may be about to be entered


@dataclass(frozen=True, slots=True)
class Groups:
    """`folders` by controller; in version 2 all are the same one."""

    version: int = 0
    folders: Mapping[str, str] = field(default_factory=dict)


def make_groups(version: int, parents: Mapping[str, str], name: str, first_of_us: int) -> Groups:
    """`parents` by controller are the groups we are in, we are `first_of_us` and all below it, as long as no job runs.

    What cannot be had is left out.
    """
    for parent in dict.fromkeys(parents.values()):
        _sweep(parent)
    if version == 2:
        return _make_v2(parents, name, first_of_us)
    folders = {}
    for controller, parent in parents.items():
        folder = f"{parent}/{JOB_GROUP_PREFIX}{name}"
        if _made(folder):
            folders[controller] = folder
    return Groups(1, folders) if folders else Groups()


def _make_v2(parents: Mapping[str, str], name: str, first_of_us: int) -> Groups:
    parent = next(iter(parents.values()), "")
    if not parent:
        return Groups()
    folder = f"{parent}/{JOB_GROUP_PREFIX}{name}"
    if not _made(folder):
        return Groups()
    found = {"memory": folder} if _hands_down_memory(parent, first_of_us) else {}
    if os.path.exists(f"{folder}/cgroup.freeze"):  # noqa: PTH110 - from Linux 5.2, and needs no controller
        found["freezer"] = folder
    if not found:
        _removed(folder)
        return Groups()
    return Groups(2, found)


def _made(folder: str) -> bool:
    try:
        os.mkdir(folder)  # noqa: PTH102
    except FileExistsError:
        return True  # by a watcher that was killed before it had started the script
    except OSError:
        return False
    return True


def _hands_down_memory(parent: str, first_of_us: int) -> bool:
    """A group that holds processes may hand nothing down. Where all of them are ours they step aside into a leaf."""
    if HANDED_DOWN not in _read(f"{parent}/cgroup.controllers").split():
        return False
    control = f"{parent}/cgroup.subtree_control"
    for _ in range(ROUNDS):  # one of us may be forked meanwhile
        if HANDED_DOWN in _read(control).split() or _write(control, f"+{HANDED_DOWN}"):
            break
        there = {int(pid) for pid in _read(f"{parent}/cgroup.procs").split()}
        if not there <= {first_of_us} | below(first_of_us):
            break
        leaf = f"{parent}/{OURS}"
        with contextlib.suppress(OSError):
            os.makedirs(leaf, exist_ok=True)  # noqa: PTH103
        for pid in there:
            _write(f"{leaf}/cgroup.procs", str(pid))
    handed_down = HANDED_DOWN in _read(control).split()
    if not handed_down:
        _step_back(parent)
    return handed_down


def find_groups(version: int, parents: Mapping[str, str], name: str) -> Groups:
    folders = {controller: f"{parent}/{JOB_GROUP_PREFIX}{name}" for controller, parent in parents.items()}
    return Groups(version, {c: folder for c, folder in folders.items() if os.path.isdir(folder)})  # noqa: PTH112


def bring_in(groups: Groups, first: int) -> None:
    """The job's first process, just forked by us, and what it has forked by then; what they start comes along.

    From outside, while it becomes the user's program: the kernel takes about 12 ms for it, and the script does not wait.
    """
    inside: set[int] = set()
    fresh = {first}
    for _ in range(ROUNDS):
        if not fresh or not groups.folders:
            return
        for pid in fresh:
            for folder in dict.fromkeys(groups.folders.values()):
                _write(f"{folder}/cgroup.procs", str(pid))
        inside |= fresh
        fresh = below(os.getpid()) - inside


def below(pid: int) -> set[int]:
    """Children and theirs; an orphan among them is ours."""
    found: set[int] = set()
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        found |= {int(child) for child in _read(str(file)).split()}
    return found.union(*(below(child) for child in found))


def group_of(pid: int) -> str:
    """In version 2, as the kernel names it; empty where it has ended."""
    lines = _read(f"/proc/{pid}/cgroup").splitlines()
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")


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
        for folder in Path(parent).glob(f"{JOB_GROUP_PREFIX}*"):
            pid, _, started = folder.name.removeprefix(JOB_GROUP_PREFIX).partition("-")
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
