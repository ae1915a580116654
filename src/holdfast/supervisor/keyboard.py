"""The user's keyboard and terminal while the script runs on a pty: input, Ctrl-Z, foreground and background."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import time
from collections.abc import Callable

from holdfast.supervisor import signals
from holdfast.supervisor.streams import Streams

FOREGROUND_CHECK_S = 0.5  # how soon a job brought to the foreground (`fg`) gets its keyboard
STOP_DELAY_S = 0.05  # for the script's own SIGTSTP handler, before its group is stopped
INPUT_LIMIT_BYTES = 1 << 16  # typed ahead of a script that does not read


class Keyboard:
    """Without a terminal it does nothing."""

    def __init__(self, streams: Streams, poll: select.poll, tell: Callable[..., bool]) -> None:
        self._streams = streams
        self._poll = poll
        self._tell = tell
        self._to_script = bytearray()
        self._listens = False
        self.fd = 0
        self.script_pid = 0
        self.between_attempts = False

    @property
    def check_again_s(self) -> float | None:
        """A job in the background looks now and then whether it has come to the front; a secret, whether it was read."""
        terminal = self._streams.terminal
        return FOREGROUND_CHECK_S if terminal is not None and (terminal.lent or not terminal.entered) else None

    def enter(self) -> None:
        terminal = self._streams.terminal
        if terminal is not None and not terminal.entered:
            terminal.enter()
            self._listen(terminal.entered and terminal.reads)

    def lend(self) -> None:
        """Input comes from elsewhere, but a script that turns its terminal's echo off asks somebody there for a secret."""
        terminal = self._streams.terminal
        if terminal is None or terminal.reads or not terminal.entered or not terminal.echoes:
            return
        asks = self._unseen()
        if asks and not terminal.lent and terminal.in_foreground():
            with contextlib.suppress(OSError):
                self.fd = self.fd or os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
                terminal.lend()
                self._listen(True)
        elif terminal.lent and not asks:
            terminal.take_back()
            self._listen(False)

    def _unseen(self) -> bool:
        try:
            return self._streams.master is not None and not termios.tcgetattr(self._streams.master)[3] & termios.ECHO
        except termios.error:
            return False

    def leave(self) -> None:
        terminal = self._streams.terminal
        if terminal is not None:
            terminal.leave()
            self._listen(False)

    def enter_again(self) -> None:
        """After a stop and a continue: the shell has changed the terminal modes meanwhile."""
        terminal = self._streams.terminal
        if terminal is not None and terminal.entered:
            self.leave()
            self.enter()

    def resized(self) -> None:
        if self._streams.terminal is not None and self._streams.master is not None:
            self._streams.terminal.copy_size(self._streams.master)

    def take(self) -> None:
        """Reads what was typed."""
        try:
            typed = os.read(self.fd, 4096)
        except OSError:
            typed = b""
        if not typed:  # the terminal is gone
            self._listen(False)
            return
        self._to_script += typed
        self.feed()
        if self._is_key(termios.VINTR, typed):
            self._interrupt()
        elif self._asks_to_stop(typed):
            self.suspend(whole_group=True)

    def feed(self) -> None:
        """What a pty does not take now waits, and the keyboard with it; Ctrl-C is taken by the pty at any time."""
        master = self._streams.master
        if master is None or not self._to_script:
            return
        with contextlib.suppress(OSError):
            del self._to_script[: os.write(master, self._to_script)]
        full = len(self._to_script) >= INPUT_LIMIT_BYTES
        terminal = self._streams.terminal
        if terminal is not None and terminal.entered and (terminal.reads or terminal.lent):
            self._listen(not full)
        self._poll.register(master, select.POLLIN | (select.POLLOUT if self._to_script else 0))

    def _listen(self, yes: bool) -> None:
        if yes and not self._listens:
            self._poll.register(self.fd, select.POLLIN)
        elif self._listens and not yes:
            self._poll.unregister(self.fd)
        self._listens = yes

    def _is_key(self, key: int, typed: bytes) -> bool:
        """Whether the script's terminal takes what was typed as this key."""
        if self._streams.master is None:
            return False
        try:
            modes = termios.tcgetattr(self._streams.master)
        except termios.error:
            return False
        wanted = modes[6][key]
        return bool(modes[3] & termios.ISIG and isinstance(wanted, bytes) and wanted in typed)

    def _interrupt(self) -> None:
        """Ctrl-C: the pty has sent it to the script. Between two attempts there is no script, and it stops the run."""
        if not self.between_attempts:
            self._tell("key.interrupt")
        else:
            about = {"number": signal.SIGINT, "sender_pid": 0, "sender_name": "", "to_group": True}
            self._tell("signal", at=time.monotonic(), **about)

    def _asks_to_stop(self, typed: bytes) -> bool:
        """Ctrl-Z, where the script's terminal takes it as such and the script is in front.

        The kernel ignores a terminal's stop in a group whose parents are outside its session, as the script's is.
        """
        master = self._streams.master
        if master is None or not self.script_pid or not self._is_key(termios.VSUSP, typed):
            return False
        try:
            in_front = os.tcgetpgrp(master) == self.script_pid
        except OSError:
            return False
        return in_front and not signals.ignores_stop(self.script_pid)

    def suspend(self, whole_group: bool) -> None:
        if not self.script_pid or signals.nobody_would_continue_us():
            return
        signals.give(self.script_pid, signal.SIGTSTP, to_group=True)  # for a SIGTSTP handler of the script
        time.sleep(STOP_DELAY_S)
        signals.give(self.script_pid, signal.SIGSTOP, to_group=True)
        self._tell("run.suspended")
        self.leave()
        os.kill(0 if whole_group else os.getpid(), signal.SIGSTOP)
        self.enter()
        signals.give(self.script_pid, signal.SIGCONT, to_group=True)
        self._tell("run.resumed")
