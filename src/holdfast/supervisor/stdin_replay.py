"""The script's standard input, kept for a later attempt, and whether an attempt has read from it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import struct
import termios
from pathlib import Path

from holdfast.supervisor.streams import Streams


class StdinReplay:
    """What one can know without reading along, by the kind of input:

    - a file: its position has moved;
    - a terminal: the kernel notes the time of a read, in steps of 8 s, so the time is set back first. That of a job in
      the background is its shell's to read and tells nothing: such a job reads no keyboard;
    - a pipe or a socket: what waits in it, and whether its writer is there, is no longer as it was.
    """

    def __init__(self, streams: Streams) -> None:
        self._own_pty = streams.script_fds[0] == streams.slave
        self.fd = streams.script_fds[0]
        if self.fd == 0:
            with contextlib.suppress(OSError):  # closed: a later attempt gets /dev/null
                self.fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        self._before: object = None

    def about_to_start(self) -> None:
        with contextlib.suppress(OSError):
            if os.isatty(self.fd):
                state = os.fstat(self.fd)
                os.utime(self.fd, ns=(max(0, state.st_atime_ns - 16 * 10**9), state.st_mtime_ns))
        self._before = self._state()

    def was_read(self) -> bool:
        if os.isatty(self.fd) and not self._own_pty and _in_the_background(os.getppid()):
            return False
        return self._state() != self._before

    def _state(self) -> object:
        try:
            kind = os.fstat(self.fd)
            if os.isatty(self.fd):
                return int(kind.st_atime)
            if stat.S_ISREG(kind.st_mode):
                return os.lseek(self.fd, 0, os.SEEK_CUR)
            if stat.S_ISFIFO(kind.st_mode) or stat.S_ISSOCK(kind.st_mode):
                return _waiting_in(self.fd)
        except OSError:
            pass
        return None  # /dev/null and the like, or nothing at all


def _waiting_in(fd: int) -> tuple[int, bool]:
    (waiting,) = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, struct.pack("i", 0)))
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    hung_up = any(happened & select.POLLHUP for _, happened in poll.poll(0))
    return waiting, hung_up


def _in_the_background(relay: int) -> bool:
    """By the relay's /proc entry: the terminal is the relay's, and this process cannot ask it for the foreground group."""
    try:
        fields = Path(f"/proc/{relay}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[2] != fields[5]
    except (OSError, IndexError):
        return False
