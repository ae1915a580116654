"""What a descriptor of a process leads to: a file and its mount, a socket and its addresses, a pipe and who holds its other end."""

from __future__ import annotations

import contextlib
import os
import socket
import time

from holdfast.stack_snapshots import End

ACCESS_MODE, READ_ONLY, WRITE_ONLY = 3, 0, 1  # of a descriptor's flags
MOST_PROCESSES = 4000  # that are looked through for the other end of a pipe
TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")


class PipeHolders:
    """Who holds which end of a pipe, in every process that may be looked into; read once for a snapshot, when first asked for."""

    def __init__(self, until: float, proc: str = "/proc") -> None:
        self._until, self._proc = until, proc
        self._ends: dict[str, set[tuple[int, str]]] | None = None
        self._whole = True

    def others(self, name: str, pid: int, side: str) -> tuple[tuple[int, ...] | None, bool]:
        """Of the pipe `name`: the processes that hold its `side` ("r" or "w"), and whether `pid` itself is one of them."""
        if self._ends is None:
            self._ends = {}
            self._look()
        found = {one for one, held in self._ends.get(name, ()) if side in held}
        others = tuple(sorted(found - {pid}))
        return (others if others or self._whole else None), pid in found

    def _look(self) -> None:
        pids = [name for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208
        self._whole = len(pids) <= MOST_PROCESSES
        for pid in pids[:MOST_PROCESSES]:
            if time.monotonic() >= self._until:
                self._whole = False
                return
            try:
                self._look_at(int(pid))
            except FileNotFoundError:
                continue
            except OSError:
                self._whole = False  # of another user

    def _look_at(self, pid: int) -> None:
        assert self._ends is not None
        folder = f"{self._proc}/{pid}/fd"
        for number in os.listdir(folder):  # noqa: PTH208
            with contextlib.suppress(OSError):
                name = os.readlink(f"{folder}/{number}")  # noqa: PTH115
                if name.startswith(("pipe:", "/")):  # a path may be that of a named pipe
                    self._ends.setdefault(name, set()).add((pid, sides_of(os.lstat(f"{folder}/{number}").st_mode)))


def sides_of(link_mode: int) -> str:
    """The permissions of the link in /proc/<pid>/fd say how it was opened."""
    return ("r" if link_mode & 0o400 else "") + ("w" if link_mode & 0o200 else "")


class Descriptors:
    """Of one process."""

    def __init__(self, pid: int, pipes: PipeHolders, proc: str = "/proc") -> None:
        self._pid, self._pipes = pid, pipes
        self._folder = f"{proc}/{pid}"
        self._mounts: list[tuple[str, str]] | None = None

    def end(self, fd: int, of_a_pipe: bool = False) -> End:
        """`of_a_pipe`: the kernel says so. What lies at a path is not asked of a file system, which may hang."""
        try:
            name = os.readlink(f"{self._folder}/fd/{fd}")  # noqa: PTH115
            mode = os.lstat(f"{self._folder}/fd/{fd}").st_mode
        except OSError:
            return End(fd, "other", "")
        if name.startswith("pipe:") or of_a_pipe:
            return self._pipe(fd, name, sides_of(mode))
        if name.startswith("socket:"):
            return End(fd, "socket", self._addresses(name) or name)
        if name.startswith(TERMINALS):
            return End(fd, "terminal", name)
        if name.startswith("/") and not name.startswith("/memfd:"):
            return self.of_path(name, fd)
        return End(fd, "other", name)

    def of_path(self, path: str, fd: int = -1) -> End:
        if path and not path.startswith("/"):
            with contextlib.suppress(OSError):
                path = f"{os.readlink(f'{self._folder}/cwd')}/{path}"  # noqa: PTH115
        return End(fd, "file", path, self._filesystem(path))

    def _pipe(self, fd: int, name: str, side: str) -> End:
        others, itself = self._pipes.others(name, self._pid, "w" if side == "r" else "r")
        return End(fd, "pipe", name, holders=others, held_by_itself=itself)

    def _filesystem(self, path: str) -> str:
        if self._mounts is None:
            self._mounts = mounts_in(self._read("mountinfo"))
        around = [(point, text) for point, text in self._mounts if point in ("/", path) or path.startswith(point + "/")]
        return max(around, key=lambda mount: len(mount[0]))[1] if around else ""

    def _addresses(self, name: str) -> str:
        inode = name.removeprefix("socket:[").removesuffix("]")
        for table in ("tcp", "tcp6"):
            for line in self._read(f"net/{table}").splitlines()[1:]:
                words = line.split()
                if len(words) > 9 and words[9] == inode:
                    return f"tcp {address_of(words[1])} to {address_of(words[2])}"
        for line in self._read("net/unix").splitlines()[1:]:
            words = line.split()
            if len(words) > 6 and words[6] == inode:
                return f"unix {words[7]}" if len(words) > 7 else "unix socket without a name"
        return ""

    def _read(self, name: str) -> str:
        try:
            with open(f"{self._folder}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def mounts_in(mountinfo: str) -> list[tuple[str, str]]:
    """Mount points, each with its type and source: `nfs4 server:/export`."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words, kind = before.split(), after.split()
        if len(words) > 4 and len(kind) > 1:
            found.append((words[4].replace("\\040", " "), f"{kind[0]} {kind[1]}".replace("\\040", " ")))
    return found


def address_of(hexadecimal: str) -> str:
    """`0100007F:1F90` of /proc/net/tcp as `127.0.0.1:8080`."""
    host, _, port = hexadecimal.partition(":")
    words = [int(host[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(host), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    text = socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:")
    return f"[{text}]:{int(port, 16)}" if ":" in text else f"{text}:{int(port, 16)}"
