"""Free space of the file systems the job writes to, and bytes read from and written to disks."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from itertools import islice

import psutil

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, under, why
from holdfast.probes.mounts import Mount, holding, mounts_of
from holdfast.probes.tree import Tree
from holdfast.vocabulary import Event, Sample

SURVEY_EVERY_S = 10.0  # which file systems the job writes to
DESCRIPTORS_A_SURVEY = 500
MOUNTS_AT_MOST = 16

PSEUDO = frozenset(
    {
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fuse.gvfsd-fuse",
        "fuse.lxcfs",
        "fuse.portal",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "ramfs",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "squashfs",
        "sysfs",
        "tracefs",
    }
)
PSEUDO_PLACES = ("/proc/", "/sys/", "/dev/")
# A server that does not answer can block these for ever, so they are read only where the job writes.
REMOTE = ("nfs", "cifs", "smb", "9p", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "afs", "fuse.")

MIB = 1 << 20
FULL_RATIO = 0.02  # of the whole is left: full
FULL_AT_MOST_BYTES = 256 * MIB  # 2 % of a large disk is enough to write to; a failed write leaves far less


@dataclass(frozen=True, slots=True)
class Room:
    free_bytes: int
    total_bytes: int
    free_inodes: int | None  # None where the file system has no fixed number (btrfs)
    total_inodes: int | None = None

    @property
    def full(self) -> bool:
        threshold = max(MIB, min(FULL_RATIO * self.total_bytes, FULL_AT_MOST_BYTES))
        return self.total_bytes > 0 and (self.free_bytes < threshold or self.free_inodes == 0)


class Disk:
    name = "disk"
    every_s = 2.0

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._root = under(scope.root, "")
        self._base = self._root
        self._watched: dict[str, str] = {}  # device -> mount point
        self._at_start: dict[str, Room] | None = None
        self._survey_due = float("-inf")
        self._turn = 0
        try:
            self._tree: Tree | None = Tree(scope)
        except Missing:
            self._tree = None

    def read(self, now: float) -> list[Reading]:
        if now >= self._survey_due:
            self._survey_due = now + SURVEY_EVERY_S
            self._survey()
        readings: list[Reading] = []
        for point in self._watched.values():
            readings += self._room_samples(point, now)
        return readings + list(self._traffic(now))

    def closing(self, now: float) -> list[Reading]:
        """A job that failed at a full disk may have written anywhere: reads all of them."""
        readings = self.read(now)
        before = self._at_start or {}
        for device, point, room in self._rooms():
            if _filled_up(before.get(device), room):
                about = {
                    "mountpoint": point,
                    "free_bytes": room.free_bytes,
                    "total_bytes": room.total_bytes,
                    "free_inodes": room.free_inodes,
                }
                readings.append(Event("disk.full", now, about))
        return readings

    def _survey(self) -> None:
        mounts = self._mounts()
        paths = [self._real(str(directory)) for directory in self._scope.directories]
        found = [holding(path, mounts) for path in paths]
        if not mounts:
            self._watched = {point: point for point in map(self._climb, paths)}
            return
        if paths and paths[0] != "/":
            found += [mount for mount in mounts if mount.writable and mount.point.startswith(paths[0] + "/")]
        found += [holding(path, mounts) for path in self._written()]
        for mount in found:
            if mount is not None and _can_fill(mount) and len(self._watched) < MOUNTS_AT_MOST:
                known = self._watched.get(mount.device)
                if known is None or len(mount.point) < len(known):
                    self._watched[mount.device] = mount.point
        if self._at_start is None:
            self._at_start = {device: room for device, _, room in self._rooms()}

    def _mounts(self) -> list[Mount]:
        """The script's own table, seen through its own root where it has a mount namespace to itself."""
        proc = f"{self._root}/proc"
        self._base = self._root
        for pid in (self._scope.script_pid, self._scope.watcher_pid):
            try:
                mounts = mounts_of(proc, pid)
            except OSError:
                continue
            if pid == self._scope.script_pid and self._apart(proc):
                self._base = f"{proc}/{pid}/root"
            return mounts
        return []

    def _apart(self, proc: str) -> bool:
        pids = (self._scope.script_pid, self._scope.watcher_pid)
        try:
            script, watcher = (os.readlink(f"{proc}/{pid}/ns/mnt") for pid in pids)  # noqa: PTH115
        except OSError:
            return False
        return script != watcher

    def _real(self, directory: str) -> str:
        path = os.path.realpath(self._base + directory)
        # Resolving /proc/<pid>/root leads out of it; then the path is taken as it was given.
        return path[len(self._base) :] or "/" if path.startswith(self._base) else directory

    def _climb(self, path: str) -> str:
        while path != "/" and not os.path.ismount(self._base + path):
            path = os.path.dirname(path)  # noqa: PTH120
        return path

    def _written(self) -> set[str]:
        """Paths of files held open for writing, some processes at a time."""
        paths: set[str] = set()
        if self._tree is None:
            return paths
        pids = sorted(self._tree.refresh())
        left = DESCRIPTORS_A_SURVEY
        for _ in range(len(pids)):
            pid = pids[self._turn % len(pids)]
            self._turn += 1
            left -= self._written_by(pid, left, paths)
            if left <= 0:
                break
        return paths

    def _written_by(self, pid: int, at_most: int, paths: set[str]) -> int:
        folder = f"{self._root}/proc/{pid}/fd"
        looked_at = 0
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, at_most):
                    looked_at += 1
                    # The link's own permission bits say how the file was opened.
                    if entry.stat(follow_symlinks=False).st_mode & stat.S_IWUSR:
                        path = os.readlink(entry.path)  # noqa: PTH115
                        if path.startswith("/") and not path.startswith((*PSEUDO_PLACES, "/memfd:")):
                            paths.add(path)
        except OSError:
            return looked_at  # the process ended, or is another user's
        return looked_at

    def _rooms(self) -> list[tuple[str, str, Room]]:
        """Every local file system that can fill up, once."""
        points: dict[str, str] = {}
        for mount in self._mounts():
            if _can_fill(mount) and mount.writable and not mount.kind.startswith(REMOTE):
                known = points.get(mount.device)
                if known is None or len(mount.point) < len(known):
                    points[mount.device] = mount.point
        points.update(self._watched)
        rooms = []
        for device, point in points.items():
            try:
                rooms.append((device, point, room_at(self._base + point)))
            except OSError:
                continue
        return rooms

    def _room_samples(self, point: str, now: float) -> list[Sample]:
        free, total, inodes = (f"disk[{point}].{what}" for what in ("free_bytes", "total_bytes", "free_inodes_count"))
        try:
            room = room_at(self._base + point)
        except OSError as error:
            return missing((free, total, inodes), now, why(error))
        no_inodes = "" if room.free_inodes is not None else "this file system has no fixed number"
        return [
            Sample(free, room.free_bytes, now),
            Sample(total, room.total_bytes, now),
            Sample(inodes, room.free_inodes, now, no_inodes),
        ]

    def _traffic(self, now: float) -> list[Sample]:
        names = ("disk.read_bytes", "disk.written_bytes")
        try:
            disks = psutil.disk_io_counters(perdisk=True)
        except (OSError, NotImplementedError, RuntimeError) as error:
            return missing(names, now, str(error) or type(error).__name__)
        # A partition or a logical volume would count its disk's bytes again.
        real = [c for name, c in disks.items() if os.path.exists(f"{self._root}/sys/block/{name}/device")]  # noqa: PTH110
        if not real:
            return missing(names, now, "no physical disk is visible here")
        values = (sum(one.read_bytes for one in real), sum(one.write_bytes for one in real))
        return [Sample(name, value, now) for name, value in zip(names, values, strict=True)]


def room_at(path: str) -> Room:
    at = os.statvfs(path)
    inodes = (at.f_favail, at.f_files) if at.f_files else (None, None)
    return Room(at.f_bavail * at.f_frsize, at.f_blocks * at.f_frsize, *inodes)


def _can_fill(mount: Mount) -> bool:
    return mount.kind not in PSEUDO and not (mount.point + "/").startswith(PSEUDO_PLACES)


def _filled_up(before: Room | None, now: Room) -> bool:
    """Full now, and either not full when the run began, or with less than half of the space left then."""
    if not now.full:
        return False
    if before is None or not before.full:
        return True
    return now.free_bytes * 2 < before.free_bytes or (now.free_inodes == 0 and before.free_inodes != 0)
