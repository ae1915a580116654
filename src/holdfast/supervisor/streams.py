"""How the script's three standard descriptors are laid: a pty where the user has a terminal, pipes elsewhere.

Output is judged by itself: `holdfast run … 2> log` has a terminal on stdout and a pipe on stderr; where both lead to the
same file they share one pipe, so that lines keep their order. Input goes through the pty only where stdout does too:
otherwise (`… | less`, `… > log`) the script inherits it and the keyboard is left to whom it belongs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import tty
from dataclasses import dataclass, field

PIPE_BYTES = 1 << 20  # the most a plain user may ask for: a script that prints much waits less often


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
    on_terminal[0] = on_terminal[0] and on_terminal[1]
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
        for fd in (0, 1, 2):
            if on_terminal[fd]:
                script_fds[fd] = slave
        shown_on = next((fd for fd in (1, 2) if on_terminal[fd]), user_tty)
        sources.append(Source("terminal", master, shown_on))
    for fd, stream in ((1, "stdout"), (2, "stderr")):
        if fd == 2 and not on_terminal[1] and not on_terminal[2] and _same_file(1, 2):
            script_fds[2] = script_fds[1]
        elif not on_terminal[fd]:
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


def _same_file(one: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return False


class Terminal:
    """The user's terminal. Raw while the script's own pty does the line editing, and as it was afterwards.

    Where the script's input does not come from it (`reads` is false), it is left as it is, but for a secret the script
    asks for there.
    """

    def __init__(self, fd: int, reads: bool) -> None:
        self.fd = fd
        self.reads = reads
        self.entered = False
        self.lent = False
        self._former = termios.tcgetattr(fd)

    def copy_to(self, slave: int) -> None:
        """A fresh pty has sane modes. Those of a terminal we are not in front of are its shell's line editor's."""
        modes = termios.tcgetattr(self.fd if self.in_foreground() else slave)
        if not self.reads:
            modes[1] &= ~termios.OPOST  # the user's terminal turns \n into \r\n itself, for others who write there too
        termios.tcsetattr(slave, termios.TCSANOW, modes)
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
        self.entered = True
        if self.reads:
            with contextlib.suppress(termios.error, OSError):
                self._former = termios.tcgetattr(self.fd)
                tty.setraw(self.fd, termios.TCSANOW)

    def leave(self) -> None:
        self.take_back()
        if self.entered:
            self.entered = False
            if self.reads:
                self._as_it_was()

    @property
    def echoes(self) -> bool:
        return bool(self._former[3] & termios.ECHO)

    def lend(self) -> None:
        """Key by key and without echo; its own keys for signals and its own line ends stay."""
        self.lent = True
        with contextlib.suppress(termios.error, OSError):
            self._former = termios.tcgetattr(self.fd)
            modes = termios.tcgetattr(self.fd)
            modes[3] &= ~(termios.ECHO | termios.ICANON)
            modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self.fd, termios.TCSANOW, modes)

    def take_back(self) -> None:
        if self.lent:
            self.lent = False
            self._as_it_was()

    def _as_it_was(self) -> None:
        if self.in_foreground():
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self.fd, termios.TCSANOW, self._former)
