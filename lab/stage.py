"""Puts a program under limits: cgroups of its own, ulimits, small file systems that nobody else sees."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .case import Limits

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
REMOVAL_PATIENCE_S = 5.0
ENTERING_PATIENCE_S = 1.0
_TURNS = itertools.count()


class CannotStage(Exception):
    """Why this machine cannot stage the limits, in one line."""


class Hierarchy:
    """The cgroup file systems of this machine, version 1, 2, or both side by side."""

    def __init__(
        self, root: Path = CGROUPS, own: Path = OWN_CGROUPS, enter: Callable[[Path], str] | None = None
    ) -> None:
        self._root = root
        self._own = own
        self._enter = enter or try_entering

    def create(self, controller: str, name: str) -> tuple[Path, bool]:
        """A new group below our own one, so that limits around us keep holding; and whether it is of version 2."""
        v1 = self._own_path(controller)
        if v1 is not None and (self._root / controller).is_dir():
            parents, is_v2 = [_inside(self._root / controller, v1)], False
        elif (self._root / "cgroup.controllers").exists():
            parents, is_v2 = self._v2_parents(controller), True
        else:
            parents, is_v2 = [], False
        why = ""
        for parent in parents:
            group = parent / name
            with suppress(OSError):
                group.mkdir()
                why = self._enter(group)
                if not why:
                    return group, is_v2
                group.rmdir()
        raise CannotStage(f"no {controller} cgroup can be made here{why}")

    def _v2_parents(self, controller: str) -> list[Path]:
        """Groups that hand the controller down, nearest first: one that holds processes may not, its ancestors do."""
        own = _inside(self._root, self._own_path("") or "/")
        chain = [own, *(parent for parent in own.parents if parent.is_relative_to(self._root))]
        return [group for group in chain if _hands_down(group, controller)]

    def _own_path(self, controller: str) -> str | None:
        with suppress(OSError):
            for line in self._own.read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                if controller in controllers.split(","):
                    return path
        return None


class Stage:
    """Limits around one command; `wrap` gives the command line that enters them and then becomes the command."""

    def __init__(self, limits: Limits, name: str, hierarchy: Hierarchy | None = None) -> None:
        self._limits = limits
        self._name = name
        self._hierarchy = hierarchy or Hierarchy()
        self._groups: list[Path] = []

    def __enter__(self) -> Stage:
        try:
            if self._mounts:
                _require_mounts()
            self._make_groups()
        except BaseException:
            self._remove_groups()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove_groups()

    def wrap(self, command: list[str]) -> list[str]:
        script = self._script()
        if not script:
            return command
        entered = ["sh", "-c", "\n".join(["set -e", *script, 'exec "$@"']), "stage", *command]
        return ["unshare", "-m", "--propagation", "private", *entered] if self._mounts else entered

    @property
    def _mounts(self) -> bool:
        return bool(self._limits.tmpfs) or not self._limits.kernel_log

    @property
    def groups(self) -> tuple[Path, ...]:
        return tuple(self._groups)

    def members(self) -> list[int]:
        """Processes still inside."""
        members: set[int] = set()
        for group in self._groups:
            with suppress(OSError):
                members.update(int(pid) for pid in (group / "cgroup.procs").read_text().split())
        return sorted(members)

    def memory_peak(self) -> int | None:
        """The most that was ever in use inside; None where the kernel does not say."""
        for group in self._groups:
            for name in ("memory.max_usage_in_bytes", "memory.peak"):
                with suppress(OSError):
                    return int((group / name).read_text())
        return None

    def _script(self) -> list[str]:
        limits = self._limits
        lines = [_entry(group) for group in self._groups]
        if not limits.kernel_log:
            # Opening a device on a nodev mount is refused even to root: "Permission denied", as most users get it.
            lines.append("mount --bind /dev/kmsg /dev/kmsg && mount -o remount,bind,nodev /dev/kmsg")
        for mount in limits.tmpfs:
            path = shlex.quote(mount.path)
            lines.append(f"mkdir -p {path} && mount -t tmpfs -o size={mount.bytes} tmpfs {path}")
        if limits.cpus is not None:
            chosen = _some_cpus(limits.cpus)
            lines.append(f"taskset -pc {','.join(map(str, chosen))} $$ > /dev/null")
        if limits.nofile is not None:
            lines.append(f"ulimit -n {limits.nofile}")
        if limits.cpu_seconds is not None:
            lines.append(f"ulimit -S -t {limits.cpu_seconds}")
        if limits.address_space is not None:
            lines.append(f"ulimit -v {limits.address_space // 1024}")
        return lines

    def _make_groups(self) -> None:
        try:
            if self._limits.memory is not None:
                self._limit_memory(self._limits.memory)
            if self._limits.pids is not None:
                self._limit_pids(self._limits.pids)
        except OSError as error:
            raise CannotStage(f"the limit cannot be set: {error}") from error

    def _limit_memory(self, size: int) -> None:
        group, is_v2 = self._new_group("memory")
        if is_v2:
            (group / "memory.max").write_text(str(size))
            _write_if_there(group / "memory.swap.max", "0")
        else:
            (group / "memory.limit_in_bytes").write_text(str(size))
            _write_if_there(group / "memory.memsw.limit_in_bytes", str(size))

    def _limit_pids(self, count: int) -> None:
        group, _ = self._new_group("pids")
        (group / "pids.max").write_text(str(count))

    def _new_group(self, controller: str) -> tuple[Path, bool]:
        # In version 2 a process is in one group, so memory and pids limits share it.
        for group in self._groups:
            if (group / f"{controller}.max").exists():
                return group, True
        group, is_v2 = self._hierarchy.create(controller, self._name)
        self._groups.append(group)
        return group, is_v2

    def _remove_groups(self) -> None:
        deadline = time.monotonic() + REMOVAL_PATIENCE_S
        for group in self._groups:
            # The kernel lets go of a group a moment after its last process is gone.
            while group.exists() and time.monotonic() < deadline:
                with suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.05)
        self._groups.clear()


def _some_cpus(count: int) -> list[int]:
    """Other ones at each call: programs that run side by side must not share the few they are held to."""
    allowed = sorted(os.sched_getaffinity(0))
    start = next(_TURNS) * count
    return sorted({allowed[(start + offset) % len(allowed)] for offset in range(count)})


def _inside(root: Path, path: str) -> Path:
    inside = root / path.lstrip("/")
    # A container may see the host's path in /proc but only its own part of the file system.
    return inside if inside.is_dir() else root


def _entry(group: Path) -> str:
    """By its number where 0, for itself, is not understood."""
    procs = shlex.quote(str(group / "cgroup.procs"))
    return f"{{ echo 0 > {procs}; }} 2> /dev/null || echo $$ > {procs}"


def try_entering(group: Path) -> str:
    """Why no process may enter the group; nothing where one may. Some kernels refuse one that was made just now."""
    deadline = time.monotonic() + ENTERING_PATIENCE_S
    while True:
        tried = subprocess.run(["sh", "-c", _entry(group)], capture_output=True, text=True, check=False)
        if not tried.returncode:
            return ""
        if time.monotonic() > deadline:
            return f": no process may enter {group}: {tried.stderr.strip()}"
        time.sleep(0.1)


def _hands_down(group: Path, controller: str) -> bool:
    handed_down = group / "cgroup.subtree_control"
    with suppress(OSError):
        if controller in handed_down.read_text().split():
            return True
        if controller in (group / "cgroup.controllers").read_text().split():
            handed_down.write_text(f"+{controller}")
            return True
    return False


def _write_if_there(path: Path, text: str) -> None:
    if path.exists():
        path.write_text(text)


def _require_mounts() -> None:
    if shutil.which("unshare") is None:
        raise CannotStage("there is no unshare command here")
    tried = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        raise CannotStage(f"no private mounts here: {tried.stderr.strip()}")
