"""The process the user started: passes everything through, both ways, and gives back the script's exit code.

It stays small and touches no disk. Should the watcher be killed, it becomes the script's parent (both are subreapers)
and watches on by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import threading
import time
from typing import TYPE_CHECKING, Any

from holdfast.supervisor import signals
from holdfast.supervisor.control import Link
from holdfast.supervisor.launch import reap
from holdfast.supervisor.streams import PIPE_BYTES, Source, Streams
from holdfast.supervisor.tail import Tail
from holdfast.supervisor.task import Task
from holdfast.vocabulary import Output

if TYPE_CHECKING:
    from holdfast.supervisor.tick import Watch

FLUSH_S = 0.05
PROMPT_BURST = 100  # pieces sent without delay before pieces are put together
FOREGROUND_CHECK_S = 0.5
RECORDED_PATIENCE_S = 3.0
STOP_DELAY_S = 0.05
INPUT_LIMIT_BYTES = 1 << 16


class NeverStarted(Exception):
    """`errno` 0: the watcher was killed before it came to starting the command."""

    def __init__(self, errno: int) -> None:
        super().__init__(os.strerror(errno) if errno else "Holdfast's watcher was killed before it could")
        self.errno = errno


class Relay:
    def __init__(self, task: Task, streams: Streams, link: Link, watcher_pid: int) -> None:
        self._task = task
        self._streams = streams
        self._link: Link | None = link
        self._watcher_pid = watcher_pid
        self._script_pid = 0
        self._status: int | None = None
        self._over = False
        self._watch: Watch | None = None  # ours only once the watcher is gone
        self._failed = ""
        self._buffer = memoryview(bytearray(PIPE_BYTES))
        self._tails = {source.stream: Tail(source.stream) for source in streams.sources}
        self._last_flush = 0.0
        self._prompt = float(PROMPT_BURST)
        self._refilled_at = time.monotonic()
        self._mid_line: dict[int, bool] = {}
        self._to_script = bytearray()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._last_signal: tuple[int, int, float] = (0, 0, 0.0)
        self._poll = select.poll()
        self._poll.register(self._wake_read, select.POLLIN)
        self._poll.register(link, select.POLLIN)
        for source in streams.sources:
            self._poll.register(source.fd, select.POLLIN)

    def run(self) -> int:
        """Until the script has ended and everything it printed is passed on."""
        try:
            self._enter_terminal()
            while not self._over:
                self._turn()
            self._say_goodbye()
        finally:
            self._leave_terminal()
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        return code if code >= 0 else 128 - code

    # -- one turn

    def _turn(self) -> None:
        by_fd = {source.fd: source for source in self._streams.sources}
        for fd, happened in self._poll.poll(self._patience_ms()):
            if fd in by_fd:
                self._pass_on(by_fd[fd], happened)
            elif fd == self._wake_read:
                self._woken()
            elif self._link is not None and fd == self._link.fileno():
                self._hear(self._link)
            elif fd == 0:
                self._take_input()
        self._flush_tails()
        self._check_foreground()
        if self._watch is not None:
            self._watch_on(self._watch)

    def _patience_ms(self) -> float | None:
        waits = []
        if any(self._tails.values()):
            waits.append(self._last_flush + FLUSH_S)
        terminal = self._streams.terminal
        if terminal is not None and not terminal.entered:
            waits.append(time.monotonic() + FOREGROUND_CHECK_S)
        return max(0.0, min(waits) - time.monotonic()) * 1000 if waits else None

    # -- output

    def _pass_on(self, source: Source, happened: int) -> int:
        try:
            count = os.readv(source.fd, [self._buffer])
        except BlockingIOError:
            return 0
        except OSError:  # a pty whose last writer has gone answers EIO
            count = 0
        if count == 0:
            if happened & (select.POLLHUP | select.POLLERR) or source.stream != "terminal":
                self._close(source)
            return 0
        piece = self._buffer[:count]
        self._tails[source.stream].add(piece)
        self._flush_tails()  # before it is shown: should we be killed now, the watcher has it
        if source.sink_open and not self._write(source.sink, piece):
            source.sink_open = False
            if source.stream != "terminal":
                # The reader has gone (`| head`): the script must see that as it would without us.
                self._close(source)
                self._tell("reader-gone", stream=source.stream)
        return count

    def _write(self, fd: int, piece: memoryview) -> bool:
        self._mid_line[fd] = piece[-1] != 10
        while piece:
            try:
                piece = piece[os.write(fd, piece) :]
            except BlockingIOError:  # somebody made the shared terminal non-blocking
                select.select([], [fd], [])
            except OSError:
                return False
        return True

    def _close(self, source: Source) -> None:
        with contextlib.suppress(KeyError):
            self._poll.unregister(source.fd)
        os.close(source.fd)
        self._streams.sources.remove(source)
        if source.fd == self._streams.master:
            self._streams.master = None

    def _flush_tails(self, now: bool = False) -> None:
        """At once while little is printed, so that a traceback is not lost with us; a flood is sent in portions."""
        if not any(self._tails.values()):
            return
        moment = time.monotonic()
        self._prompt = min(PROMPT_BURST, self._prompt + (moment - self._refilled_at) / FLUSH_S)
        self._refilled_at = moment
        if not now and self._prompt < 1 and moment - self._last_flush < FLUSH_S:
            return
        self._prompt = max(0.0, self._prompt - 1)
        self._last_flush = moment
        for tail in self._tails.values():
            if tail and self._record_output(tail.peek(time.time())):
                tail.clear()

    def _record_output(self, piece: Output) -> bool:
        if self._watch is not None:
            self._watch.output(piece)
            return True
        return self._link is not None and self._link.send_output(piece)

    def say(self, text: str) -> bool:
        """A line of our own on standard error, never in the middle of one of the script's."""
        terminal = self._streams.terminal
        newline = "\r\n" if terminal is not None and terminal.entered else "\n"
        start = newline if self._mid_line.get(2) or (os.isatty(2) and self._mid_line.get(1)) else ""
        return self._write(2, memoryview((start + text + newline).encode()))

    # -- input and terminal

    def _enter_terminal(self) -> None:
        terminal = self._streams.terminal
        if terminal is not None:
            terminal.enter()
            if terminal.entered and terminal.reads:
                self._poll.register(0, select.POLLIN)

    def _leave_terminal(self) -> None:
        terminal = self._streams.terminal
        if terminal is not None:
            terminal.leave()
            if terminal.reads:
                with contextlib.suppress(KeyError):
                    self._poll.unregister(0)

    def _check_foreground(self) -> None:
        terminal = self._streams.terminal
        if terminal is not None and not terminal.entered:
            self._enter_terminal()

    def _take_input(self) -> None:
        master = self._streams.master
        try:
            typed = os.read(0, 4096) if len(self._to_script) < INPUT_LIMIT_BYTES else b""
        except OSError:
            typed = b""
        if not typed or master is None:
            self._poll.unregister(0)
            return
        self._to_script += typed
        with contextlib.suppress(OSError):
            del self._to_script[: os.write(master, self._to_script)]
        if self._asks_to_stop(typed):
            self._suspend(whole_group=True)

    def _asks_to_stop(self, typed: bytes) -> bool:
        """Ctrl-Z, where the script's terminal takes it as such and the script is in front.

        The kernel ignores a terminal's stop in a group whose parents are outside its session, as the script's is.
        """
        master = self._streams.master
        if master is None or not self._script_pid:
            return False
        try:
            modes = termios.tcgetattr(master)
            in_front = os.tcgetpgrp(master) == self._script_pid
        except (termios.error, OSError):
            return False
        suspend_key = modes[6][termios.VSUSP]
        return bool(
            modes[3] & termios.ISIG
            and isinstance(suspend_key, bytes)
            and suspend_key in typed
            and in_front
            and not signals.ignores_stop(self._script_pid)
        )

    def _suspend(self, whole_group: bool) -> None:
        if not self._script_pid:
            return
        signals.give(self._script_pid, signal.SIGTSTP, to_group=True)  # its own handler, if it has one
        time.sleep(STOP_DELAY_S)
        signals.give(self._script_pid, signal.SIGSTOP, to_group=True)
        self._tell("run.suspended")
        self._leave_terminal()
        os.kill(0 if whole_group else os.getpid(), signal.SIGSTOP)
        self._enter_terminal()
        signals.give(self._script_pid, signal.SIGCONT, to_group=True)
        self._tell("run.resumed")

    # -- signals (in their own thread)

    def on_signal(self, received: signals.Received) -> None:
        terminal, master = self._streams.terminal, self._streams.master
        if received.number == signal.SIGWINCH:
            if terminal is not None and master is not None:
                terminal.copy_size(master)
        elif received.number == signal.SIGTSTP:
            self._suspend(whole_group=False)
        elif received.number == signal.SIGCHLD:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"c")
        elif received.number != signal.SIGCONT:
            self._forward(received)

    def _forward(self, received: signals.Received) -> None:
        number, sender, at = self._last_signal
        self._last_signal = (received.number, received.sender_pid, time.monotonic())
        if (number, sender) == (received.number, received.sender_pid) and time.monotonic() - at < signals.TWICE_S:
            return  # `timeout` signals its child and then the group its child is in
        if self._watch is None and self._tell(
            "signal",
            number=received.number,
            sender_pid=received.sender_pid,
            sender_name=received.sender_name,
            to_group=received.to_group,
        ):
            return
        if self._script_pid and self._status is None:
            signals.give(self._script_pid, received.number, received.to_group)
        self._tell(
            "signal.received",
            signal=received.number,
            sender_pid=received.sender_pid,
            sender_name=received.sender_name,
            forwarded=True,
        )

    # -- the watcher

    def _tell(self, kind: str, **data: Any) -> bool:
        if self._watch is not None:
            self._watch.event(kind, **data)
            return True
        return self._link is not None and self._link.tell(kind, **data)

    def _hear(self, link: Link) -> None:
        packets = link.receive()
        if packets is None:
            self._lose_watcher(link)
            return
        for packet in packets:
            assert isinstance(packet, dict)
            kind = packet["kind"]
            if kind == "started":
                self._script_pid = packet["pid"]
                self._streams.close_script_side()
            elif kind == "cannot-start":
                raise NeverStarted(packet["errno"])
            elif kind == "say":
                self.say(packet["text"])
            elif kind == "exit":
                self._status = packet["status"]
            elif kind == "over":
                self._over = True
            elif kind == "watcher.failed":
                self._failed = packet["reason"]
            elif kind == "recorded" and packet["lost"]:
                self.say(f"holdfast: {packet['lost']} records of this run could not be written")

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)
        self._collect(reap())

    def _collect(self, ended: dict[int, int]) -> None:
        if self._script_pid in ended and self._status is None:
            self._status = ended[self._script_pid]

    def _lose_watcher(self, link: Link) -> None:
        self._poll.unregister(link)
        link.close()
        self._link = None
        if self._status is not None:
            self._over = True
            return
        if not self._script_pid:
            self._script_pid = self._adopted()
        from holdfast.supervisor.tick import Watch  # noqa: PLC0415 - only a relay that is alone needs it

        self._watch = Watch(self._task, "relay", self._script_pid, self.say)
        self._watch.event("watcher.lost", pid=self._watcher_pid, reason=self._failed)
        # A thread, so that nothing that goes wrong in watching can hold up or end the passing on.
        threading.Thread(target=self._watch.keep_ticking, daemon=True, name="watch").start()
        self._collect(reap())

    def _adopted(self) -> int:
        """The script of a watcher that was killed between starting it and telling us."""
        from holdfast.supervisor.tree import left_behind  # noqa: PLC0415

        children = left_behind()
        if not children:
            raise NeverStarted(0)
        self._streams.close_script_side()
        return int(children[0].pid)

    def _watch_on(self, watch: Watch) -> None:
        if self._status is None:
            return
        from holdfast.supervisor.finish import after_the_script  # noqa: PLC0415

        after_the_script(watch, self._status, idle=self._keep_passing_on)
        self._over = True

    # -- the end

    def _keep_passing_on(self, seconds: float) -> None:
        by_fd = {source.fd: source for source in self._streams.sources}
        for fd, happened in self._poll.poll(seconds * 1000):
            if fd in by_fd:
                self._pass_on(by_fd[fd], happened)

    def _say_goodbye(self) -> None:
        """Nothing of the job runs any more: pass on what is still in the pipes, then let the record be closed."""
        for source in list(self._streams.sources):
            os.set_blocking(source.fd, False)
            while source in self._streams.sources and self._pass_on(source, select.POLLHUP):
                pass
        self._flush_tails(now=True)
        if self._watch is not None:
            self._watch.event("run.end")
            lost = self._watch.close()
            if lost:
                self.say(f"holdfast: {lost} records of this run could not be written")
        elif self._link is not None:
            self._link.tell("flushed")
            until = time.monotonic() + RECORDED_PATIENCE_S
            while self._link is not None and time.monotonic() < until:
                if select.select([self._link], [], [], until - time.monotonic())[0]:
                    self._hear(self._link)
