"""The watching process: parent of the script, keeper of the record. Holds the script's output should the relay die."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from typing import Any

from holdfast.actions.contain import Groups, remove_groups
from holdfast.supervisor import signals
from holdfast.supervisor.control import Link
from holdfast.supervisor.guard.place import contain_job, thaw
from holdfast.supervisor.guard.watching import Guarding, start_guard
from holdfast.supervisor.launch import CannotStart, launch, leave_settings, reap, script_environment
from holdfast.supervisor.streams import Source, Streams
from holdfast.supervisor.task import Task
from holdfast.supervisor.toughen import become_subreaper, lock_memory, take_name
from holdfast.vocabulary import Output

WITNESS_S = 0.06  # how long a forwarded signal waits to see whether everybody got it
TOGETHER_S = 1.5  # on a loaded machine the two of us notice the same signal that far apart
DRAINED_LIMIT_BYTES = 256 << 20


def watch_run(task: Task, streams: Streams, link: Link, signal_mask: set[int], oom_score: str | None) -> None:
    """The whole life of the watcher's process."""
    os.setsid()
    groups = contain_job(task.policy, os.getppid())
    guard = start_guard(task)
    become_subreaper()
    leave_settings(task)
    try:
        environment = script_environment(os.environ, task.channel)
        acting = groups if task.policy == "protect" else None
        script_pid = launch(task.command, streams, environment, signal_mask, oom_score, groups=acting)
    except CannotStart as error:
        remove_groups(groups)
        link.tell("cannot-start", errno=error.errno)
        return
    if guard is not None:
        guard.begin(script_pid, groups)
    streams.close_script_side()
    link.tell("started", pid=script_pid)
    _let_go_of_the_terminal()
    take_name("hf-watcher")
    lock_memory()
    watcher = Watcher(task, streams, link, script_pid, guard)
    watcher.contained(groups)
    watcher.run()
    remove_groups(groups)


def _let_go_of_the_terminal() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)


class Watcher:
    def __init__(
        self, task: Task, streams: Streams, link: Link, script_pid: int, guard: Guarding | None = None
    ) -> None:
        self._link = link
        self._task = task
        self._sources = list(streams.sources)
        self._script_pid = script_pid
        self._status: int | None = None
        self._relay_here = True
        self._flushed = False
        self._to_forward: list[tuple[float, dict[str, Any]]] = []
        self._witnessed: dict[int, float] = {}
        self._drained: _DrainedOutput | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(link, selectors.EVENT_READ, None)
        self._listen_to_signals()
        from holdfast.supervisor.tick import Watch  # noqa: PLC0415 - after the launch: the script does not wait for it

        self._watch = Watch(task, "watcher", script_pid, say=lambda text: link.tell("say", text=text))
        self._guard = guard
        self._groups = Groups()
        if guard is not None:
            self._selector.register(guard, selectors.EVENT_READ, None)
            self._watch.on_answer = guard.answer

    def contained(self, groups: Groups) -> None:
        self._groups = groups
        if self._task.policy == "protect":
            self._watch.event("job.contained", version=groups.version, controllers=sorted(groups.folders))

    def run(self) -> None:
        due = time.monotonic()
        while self._status is None:
            now = time.monotonic()
            if now >= due:
                due = now + self._watch.tick(time.time())
                if self._guard is not None:
                    self._guard.trainers(self._watch.trainers())
            self._serve(min([due, *(at for at, _ in self._to_forward)]) - time.monotonic())
            self._status = reap().get(self._script_pid)
        self._finish()

    def _finish(self) -> None:
        from holdfast.supervisor.finish import after_the_script  # noqa: PLC0415

        assert self._status is not None
        self._hear_the_guard()  # what it told before the end comes before the end in the record
        if self._guard is not None:
            self._guard.rest()
        self._link.tell("exit", status=self._status)
        after_the_script(self._watch, self._status, idle=self._serve)
        self._link.tell("over")
        while self._relay_here and not self._flushed:  # it may sit in a write to a pager that nobody scrolls
            self._serve(0.5)
        if self._drained:
            self._drain_all()
        self._watch.event("run.end")
        self._link.tell("recorded", lost=self._watch.close())

    def _serve(self, patience_s: float) -> None:
        """Waits at most so long for the relay, a signal or output that is ours to drain."""
        for key, _ in self._selector.select(max(0.0, patience_s)):
            if key.fileobj is self._link:
                self._hear()
            elif key.fileobj is self._guard:
                self._hear_the_guard()
            elif isinstance(key.data, Source):
                self._drain(key.data)
            else:
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 4096)
        self._link.flush()
        self._forward_due()

    def _hear(self) -> None:
        packets = self._link.receive()
        if packets is None:
            self._relay_lost()
            return
        for packet in packets:
            if isinstance(packet, Output):
                self._watch.output(packet)
            elif packet["kind"] == "signal":
                self._to_forward.append((time.monotonic() + WITNESS_S, packet))
            elif packet["kind"] == "flushed":
                self._flushed = True
            elif packet["kind"] == "reader-gone":
                self._close_source(packet["stream"])
            else:
                self._watch.event(packet.pop("kind"), **packet)

    def _hear_the_guard(self) -> None:
        from holdfast.supervisor.guard import record  # noqa: PLC0415
        from holdfast.supervisor.tree import release_held  # noqa: PLC0415

        if self._guard is None:
            return
        for event in self._guard.receive() or ():
            record.take(self._watch, event)
        if self._guard.lost:
            self._selector.unregister(self._guard)
            self._guard = None
            thaw(self._groups)
            self._watch.event("guard.lost", released=release_held())

    def _forward_due(self) -> None:
        """Passes a signal on once. Where we got it too, it was sent to every process, the script included."""
        now = time.monotonic()
        for at, packet in [item for item in self._to_forward if item[0] <= now]:
            self._to_forward.remove((at, packet))
            number = packet["number"]
            everybody = abs(self._witnessed.get(number, float("-inf")) - packet["at"]) < TOGETHER_S
            if not everybody and self._status is None:
                signals.give(self._script_pid, number, packet["to_group"])
            self._watch.event(
                "signal.received",
                signal=number,
                sender_pid=packet["sender_pid"],
                sender_name=packet["sender_name"],
                forwarded=not everybody,
            )

    def _listen_to_signals(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._wake_ends = (ours, theirs)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        self._selector.register(ours, selectors.EVENT_READ, "signal")
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in signals.FORWARDED:
            signal.signal(number, self._witness)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.HANDLED)

    def _witness(self, number: int, _frame: object) -> None:
        self._witnessed[number] = time.monotonic()

    def _relay_lost(self) -> None:
        self._relay_here = False
        self._selector.unregister(self._link)
        if self._flushed:
            return
        self._drained = _DrainedOutput(self._task)
        self._watch.event("relay.lost", output=self._drained.path)
        for source in self._sources:
            os.set_blocking(source.fd, False)
            self._selector.register(source.fd, selectors.EVENT_READ, source)

    def _drain(self, source: Source) -> int:
        try:
            data = os.read(source.fd, 1 << 16)
        except BlockingIOError:
            return 0
        except OSError:  # a pty whose last writer has gone answers EIO
            data = b""
        if not data:
            self._close_source(source.stream)
        elif self._drained:
            self._drained.write(data)
            self._watch.output(Output(source.stream, time.time(), data))
        return len(data)

    def _drain_all(self) -> None:
        for source in list(self._sources):
            while self._drain(source):
                pass

    def _close_source(self, stream: str) -> None:
        for source in [source for source in self._sources if source.stream == stream]:
            with contextlib.suppress(KeyError):
                self._selector.unregister(source.fd)
            os.close(source.fd)
            self._sources.remove(source)


class _DrainedOutput:
    """What the script prints after nobody is there to show it."""

    def __init__(self, task: Task) -> None:
        self.path = str(task.directory / "output.log") if task.directory else os.devnull
        self._left = DRAINED_LIMIT_BYTES
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            self._fd = os.open(os.devnull, os.O_WRONLY)

    def write(self, data: bytes) -> None:
        if self._left > 0:
            self._left -= len(data)
            with contextlib.suppress(OSError):  # a full disk stops the log, never the script
                os.write(self._fd, data)
