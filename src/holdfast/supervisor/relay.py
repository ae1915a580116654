"""The process the user started: passes everything through, both ways, and gives back the script's exit code.

It stays small and touches no disk. Should the watcher be killed, it becomes the script's parent (both are subreapers)
and watches on by itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any

from holdfast.supervisor import signals
from holdfast.supervisor.keyboard import Keyboard
from holdfast.supervisor.launch import reap
from holdfast.supervisor.output_tail import Tail
from holdfast.supervisor.own_lines import OwnLines, same_place
from holdfast.supervisor.relay_link import Link
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.streams import PIPE_BYTES, Source, Streams
from holdfast.vocabulary import Output

if TYPE_CHECKING:
    from holdfast.supervisor.relay_watch import RelayWatch

FLUSH_S = 0.05
PROMPT_BURST = 100  # pieces sent without delay before pieces are put together
LAST_WORDS_S = 0.5
RECORDED_PATIENCE_S = 3.0
ADOPTING_ROUNDS = 500  # of 10 ms: on a loaded machine a process that was just forked may not have run yet


class NeverStarted(Exception):
    """`errno` 0: the watcher was killed before it came to starting the command."""

    def __init__(self, errno: int) -> None:
        super().__init__(os.strerror(errno) if errno else "Holdfast's watcher was killed before it could")
        self.errno = errno


class Relay:
    def __init__(self, spec: RunSpec, streams: Streams, link: Link, watcher_pid: int) -> None:
        self._spec = spec
        self._streams = streams
        self._link: Link | None = link
        self._watcher_pid = watcher_pid
        self._script_pid = 0
        self._status: int | None = None  # of the last attempt, once the watcher says that it was
        self._between: int | None = None  # of an attempt that has ended, as long as no other one runs
        self._told_passed_on = False
        self._starting = False  # the watcher is about to start another
        self._over = False
        self._lone: RelayWatch | None = None  # used only once the watcher is gone
        self._failed = ""
        self._buffer = memoryview(bytearray(PIPE_BYTES))
        self._tails = {source.stream: Tail(source.stream) for source in streams.sources}
        self._last_flush = 0.0
        self._prompt = float(PROMPT_BURST)
        self._refilled_at = time.monotonic()
        self._own_lines = OwnLines(self._write, os.isatty(2), same_place(1, 2))
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._last_signal: tuple[int, int, float] = (0, 0, 0.0)
        self._poll = select.poll()
        self._keyboard = Keyboard(streams, self._poll, self._tell)
        self._poll.register(self._wake_read, select.POLLIN)
        self._poll.register(link, select.POLLIN)
        for source in streams.sources:
            self._poll.register(source.fd, select.POLLIN)

    def run(self) -> int:
        """Until the script has ended and everything it printed is passed on."""
        try:
            self._keyboard.enter()
            while not self._over:
                self._turn()
            self._say_goodbye()
        finally:
            self._keyboard.leave()
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        return code if code >= 0 else 128 - code

    # -- one turn

    def _turn(self) -> None:
        by_fd = {source.fd: source for source in self._streams.sources}
        ready = self._poll.poll(self._patience_ms())
        self._keyboard.lend()  # before a prompt is shown: whoever answers at once is not to be seen
        for fd, happened in ready:
            if fd in by_fd and happened & ~select.POLLOUT:
                self._pass_on(by_fd[fd], happened)
            elif fd == self._wake_read:
                self._woken()
            elif self._link is not None and fd == self._link.fileno():
                self._link.flush()
                self._hear(self._link)
            elif fd == self._keyboard.fd:
                self._keyboard.take()
        self._keyboard.feed()
        self._keyboard.enter()
        if self._between is not None and not self._told_passed_on:
            self._pass_on_the_rest()
        self._flush_tails()
        self._say_what_waits()
        self._poll.register(self._link, self._interest()) if self._link is not None else None
        if self._lone is not None and self._status is not None:
            self._finish_alone(self._lone)

    def _patience_ms(self) -> float | None:
        waits = []
        if any(self._tails.values()):
            waits.append(self._last_flush + FLUSH_S)
        if self._keyboard.check_again_s is not None:
            waits.append(time.monotonic() + self._keyboard.check_again_s)
        if (say_in_s := self._own_lines.wait_s()) is not None:
            waits.append(time.monotonic() + say_in_s)
        return max(0.0, min(waits) - time.monotonic()) * 1000 if waits else None

    def _interest(self) -> int:
        return select.POLLIN | (select.POLLOUT if self._link is not None and self._link.has_untold else 0)

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
        if source.sink_open and (trouble := self._write(source.sink, piece)):
            source.sink_open = False
            self._lose_sink(source, trouble)
        self._own_lines.passed_on(source.sink, piece)
        return count

    def _lose_sink(self, source: Source, trouble: int) -> None:
        if source.stream != "terminal" and trouble == errno.EPIPE:
            # The reader has gone (`| head`): the script must get EPIPE, as it would without Holdfast.
            self._close(source)
            self._tell("reader-gone", stream=source.stream)
        else:
            self._tell("output.lost", stream=source.stream, reason=os.strerror(trouble))
            if source.sink != 2:
                self.say(f"holdfast: {source.stream} cannot be written any more: {os.strerror(trouble)}")

    def _write(self, fd: int, piece: memoryview) -> int:
        """Returns 0, or the error number."""
        while piece:
            try:
                piece = piece[os.write(fd, piece) :]
            except BlockingIOError:  # somebody made the shared terminal non-blocking
                _wait(fd, select.POLLOUT, None)
            except OSError as error:
                return error.errno or errno.EIO
        return 0

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
        if self._lone is not None:
            self._lone.do(lambda watch: watch.output(piece))
            return True
        return self._link is not None and self._link.send_output(piece)

    def say(self, text: str, now: bool = False) -> bool:
        """A line of our own on standard error, as soon as it would not stand in the middle of one of the script's."""
        told = self._own_lines.add(text)
        self._say_what_waits(now) if now else self._wake()  # it may come from a thread of ours
        return told

    def _say_what_waits(self, now: bool = False) -> None:
        terminal = self._streams.terminal
        self._own_lines.say("\r\n" if terminal is not None and terminal.entered else "\n", now)

    # -- signals (in their own thread)

    def on_signal(self, received: signals.Received) -> None:
        if received.number == signal.SIGWINCH:
            self._keyboard.resized()
        elif received.number == signal.SIGTSTP:
            self._keyboard.suspend(whole_group=False)
        elif received.number == signal.SIGCHLD:
            self._wake()
        elif received.number == signal.SIGCONT:
            self._keyboard.enter_again()
        else:
            self._forward(received)
            self._wake()  # what the watcher could not take yet waits for the loop to see that it can

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"c")

    def _forward(self, received: signals.Received) -> None:
        number, sender, at = self._last_signal
        if (number, sender) == (received.number, received.sender_pid) and time.monotonic() - at < signals.TWICE_S:
            return  # `timeout` signals its child and then the group its child is in
        self._last_signal = (received.number, received.sender_pid, time.monotonic())
        if self._lone is None and self._tell(
            "signal",
            at=time.monotonic(),
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
        if self._lone is not None:
            self._lone.do(lambda watch: watch.event(kind, **data))
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
                self._script_pid = self._keyboard.script_pid = packet["pid"]
                self._between, self._starting, self._keyboard.between_attempts = None, False, False
                self._streams.close_script_side()
            elif kind == "attempt-over":
                self._between, self._told_passed_on = packet["status"], False
                self._script_pid = self._keyboard.script_pid = 0
                self._keyboard.between_attempts = True
            elif kind == "starting":
                self._starting = True
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
            elif kind == "recorded":
                self._say_lost(packet["lost"])

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
        if self._over:
            return
        if self._status is not None:
            self._script_pid = 0  # it has ended, and that may not be in the record yet
        elif not self._script_pid and (self._between is None or self._starting):
            self._script_pid = self._keyboard.script_pid = self._adopted()
        if not self._script_pid and self._between is None and self._status is None:
            raise NeverStarted(0)
        from holdfast.supervisor.relay_watch import (  # noqa: PLC0415 - only a relay that is alone needs it
            RelayWatch,
            let_the_job_go_on,
        )

        self._lone = RelayWatch(self._spec, self._script_pid, self.say)
        self._tell("watcher.lost", pid=self._watcher_pid, reason=self._failed)
        self._lone.do(let_the_job_go_on)
        if not self._script_pid and self._status is None:
            self._status = self._between  # killed between two attempts: there is nobody to start another
        self._collect(reap())

    def _adopted(self) -> int:
        """The script of a watcher that was killed between starting it and telling us; 0 where it did not come to it."""
        from holdfast.supervisor.job_processes import left_behind  # noqa: PLC0415

        for _ in range(ADOPTING_ROUNDS):
            children = left_behind()
            scripts = [
                child.pid for child in children if _leads_a_session(child.pid)
            ]  # our other processes do not lead a session
            if scripts:
                self._streams.close_script_side()
                return int(scripts[0])
            if not children:
                break
            time.sleep(0.01)
        return 0

    def _finish_alone(self, lone: RelayWatch) -> None:
        lone.finish(self._status or 0)
        while lone.busy():
            self._keep_passing_on(0.05)
        self._over = True

    # -- the end, of an attempt or of all

    def _keep_passing_on(self, seconds: float) -> int:
        """Returns how many bytes."""
        by_fd = {source.fd: source for source in self._streams.sources}
        ready = [(by_fd[fd], happened) for fd, happened in self._poll.poll(seconds * 1000) if fd in by_fd]
        return sum(self._pass_on(source, happened) for source, happened in ready if happened & ~select.POLLOUT)

    def _pass_on_the_rest(self) -> None:
        """What an attempt printed is told before it is judged. What it left running may print on for ever."""
        until = time.monotonic() + LAST_WORDS_S
        while self._keep_passing_on(0) and time.monotonic() < until:
            pass
        self._flush_tails(now=True)
        self._told_passed_on = not any(self._tails.values()) and self._tell("passed-on")

    def _say_goodbye(self) -> None:
        """Nothing of the job runs any more: pass on what is still in the pipes, then let the record be closed."""
        for source in list(self._streams.sources):
            os.set_blocking(source.fd, False)
            while source in self._streams.sources and self._pass_on(source, select.POLLHUP):
                pass
        self._flush_tails(now=True)
        self._say_what_waits(now=True)
        if self._lone is not None:
            self._say_lost(self._lone.close(RECORDED_PATIENCE_S))
        elif self._link is not None:
            self._link.tell("flushed")
            until = time.monotonic() + RECORDED_PATIENCE_S
            while self._link is not None and time.monotonic() < until:
                if _wait(self._link.fileno(), select.POLLIN, until - time.monotonic()):
                    self._hear(self._link)
                self._link.flush() if self._link is not None else None
                self._say_what_waits(now=True)
        self._say_what_waits(now=True)

    def _say_lost(self, records: int) -> None:
        if records:
            self.say(f"holdfast: {records} records of this run could not be written")


def _leads_a_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def _wait(fd: int, what: int, seconds: float | None) -> bool:
    """`select` cannot take descriptors from 1024 on."""
    poll = select.poll()
    poll.register(fd, what)
    return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))
