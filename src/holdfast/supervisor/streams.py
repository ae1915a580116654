"""How the script's three standard descriptors are laid: a pty where the user has a terminal, pipes elsewhere.

Each descriptor is judged by itself: `holdfast run … > log` keeps a terminal on stdin and gets a pipe on stdout.
A standard input that is no terminal is the script's own: it is inherited and never read by us.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import tty
from dataclasses import dataclass, field

PIPE_BYTES = 1 << 20


@dataclass(slots=True)
class Source:
    """Something the script writes to, and where the relay passes it on."""

    stream: str
    fd: int
    sink: int
    sink_open: bool = True


@dataclass(slots=True)
class Streams:
    script_fds: tuple[int, int, int]
    sources: list[Source]
    master: int | None = None
    slave: int | None = None
    terminal: Terminal | None = None
    _script_side: list[int] = field(default_factory=list)

    def close_script_side(self) -> None:
        for fd in self._script_side:
            os.close(fd)
        self._script_side.clear()


def open_streams() -> Streams:
    on_terminal = [_is_tty(fd) for fd in (0, 1, 2)]
    sources: list[Source] = []
    script_fds = [0, 1, 2]
    master = slave = terminal = None
    opened: list[int] = []
    if any(on_terminal):
        master, slave = os.openpty()
        user_tty = on_terminal.index(True)
        terminal = Terminal(user_tty, reads=on_terminal[0])
        terminal.copy_to(slave)
        os.set_blocking(master, False)
        opened.append(slave)
        for fd in (0, 1, 2):
            if on_terminal[fd]:
                script_fds[fd] = slave
        shown_on = next((fd for fd in (1, 2) if on_terminal[fd]), user_tty)
        sources.append(Source("terminal", master, shown_on))
    for fd, stream in ((1, "stdout"), (2, "stderr")):
        if not on_terminal[fd]:
            read_end, write_end = os.pipe()
            with contextlib.suppress(OSError):  # over the user's pipe quota: 64 KiB works too
                fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            script_fds[fd] = write_end
            opened.append(write_end)
            sources.append(Source(stream, read_end, fd))
    fds = (script_fds[0], script_fds[1], script_fds[2])
    return Streams(fds, sources, master, slave, terminal, opened)


def _is_tty(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


class Terminal:
    """The user's terminal. Raw while the script's own pty does the line editing, and as it was afterwards."""

    def __init__(self, fd: int, reads: bool) -> None:
        self.fd = fd
        self.reads = reads
        self.entered = False
        self._former = termios.tcgetattr(fd)

    def copy_to(self, slave: int) -> None:
        termios.tcsetattr(slave, termios.TCSANOW, self._former)
        self.copy_size(slave)

    def copy_size(self, pty_fd: int) -> None:
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self.fd, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
            fcntl.ioctl(pty_fd, termios.TIOCSWINSZ, size)

    def in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:  # not our controlling terminal (a tty opened by name): nobody else claims it
            return True

    def enter(self) -> None:
        """Only in the foreground: a background job that sets modes is stopped by the kernel (SIGTTOU)."""
        if self.entered or not self.in_foreground():
            return
        with contextlib.suppress(termios.error, OSError):
            self._former = termios.tcgetattr(self.fd)
            if self.reads:
                tty.setraw(self.fd, termios.TCSANOW)
            else:
                modes = termios.tcgetattr(self.fd)
                modes[1] &= ~termios.OPOST  # the script's pty has turned \n into \r\n already
                termios.tcsetattr(self.fd, termios.TCSANOW, modes)
            self.entered = True

    def leave(self) -> None:
        if self.entered:
            self.entered = False
            if self.in_foreground():
                with contextlib.suppress(termios.error, OSError):
                    termios.tcsetattr(self.fd, termios.TCSANOW, self._former)
