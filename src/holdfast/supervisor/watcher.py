"""The watcher process: parent of the script; records it, and drains its output if the relay dies."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import socket
import time
from functools import partial
from typing import Any

from holdfast.actions import warn
from holdfast.actions.job_cgroups import Groups
from holdfast.actions.stop import stop_all
from holdfast.inside.checkpoint_store import remove_all
from holdfast.recorded_events import Exit
from holdfast.supervisor import signals
from holdfast.supervisor.after_exit import after_the_script, leave_nothing_behind, look_for_the_reason
from holdfast.supervisor.attempts import READ_AT_THE_END, Attempts
from holdfast.supervisor.control import Control
from holdfast.supervisor.drained_output import DrainedOutput
from holdfast.supervisor.guard import guard_events
from holdfast.supervisor.guard.cgroup_placement import let_go
from holdfast.supervisor.guard.guard_link import GuardLink
from holdfast.supervisor.hardening import give_back_freed, lock_memory
from holdfast.supervisor.job_processes import release_held
from holdfast.supervisor.launch import CannotStart, Launcher, reap
from holdfast.supervisor.relay_link import Link
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.run_start import forget_exact_command
from holdfast.supervisor.stack_taking import job_processes
from holdfast.supervisor.streams import Source, Streams
from holdfast.supervisor.tick import Watch
from holdfast.vocabulary import Decision, DecisionKind, Event, Output, Policy, Restart, signal_name

SETTLED_S = 5.0  # all probes have started: NVML takes 15 MiB for it and frees 10 of them
LAST_WORDS_S = 2.0  # the relay may be blocked in a write to a stalled terminal
UNKILLABLE_S = 15.0
WITNESS_S = 0.06  # how long a forwarded signal waits to see whether everybody got it
TOGETHER_S = 1.5  # on a loaded machine the two of us notice the same signal that far apart


class Watcher:
    def __init__(
        self,
        spec: RunSpec,
        streams: Streams,
        link: Link,
        launcher: Launcher,
        script_pid: int,
        *,
        groups: Groups,
        guard: GuardLink | None,
    ) -> None:
        self._link = link
        self._spec = spec
        self._sources = list(streams.sources)
        self._launcher = launcher
        self._script_pid = script_pid
        self._status: int | None = None  # of the script that has ended; None while one runs
        self._relay_here = True
        self._flushed = False
        self._passed_on = False  # all that the attempt printed
        self._ended_for = 0  # the signal that the script did not hear
        self._job_ended_at: float | None = None  # by us, since it stood still
        self._left_behind = False  # a script that could not be ended
        self._asked_to_stop = 0  # the signal that said so, while no script was there to get it
        self._to_forward: list[tuple[float, dict[str, Any]]] = []
        self._witnessed: dict[int, float] = {}
        self._drained: DrainedOutput | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(link, selectors.EVENT_READ, None)
        self._listen_to_signals()
        self._watch = Watch(
            spec, "watcher", script_pid, lambda text: link.tell("say", text=text), READ_AT_THE_END, check_machine=True
        )
        self._watch.end_job = self._end_job
        self._attempts = Attempts(spec, launcher)
        self._settles_at = time.monotonic() + SETTLED_S
        self._guard = guard
        self._groups = groups
        if guard is not None:
            self._selector.register(guard, selectors.EVENT_READ, None)
        self._watch.guard_questions.on_answer = self._answered
        self._control = Control(spec.directory, self._watch, lambda packet: self._to_forward.append((0.0, packet)))
        if self._control.server is not None:
            self._selector.register(self._control.server, selectors.EVENT_READ, None)
        if spec.policy == Policy.PROTECT:
            about = {"version": groups.version, "controllers": sorted(groups.folders)}
            self._watch.event("job.contained", **about, **launcher.about_scope)
        if launcher.priority:
            self._watch.event("job.turn", **launcher.priority)

    def run(self) -> None:
        while True:
            status = self._until_it_ends()
            self._relieve_the_guard()
            if status == 0 or self._left_behind or not self._spec.may_restart:
                self._link.tell("exit", status=status)
                after_the_script(self._watch, status, idle=self._serve)
                if status == 0:
                    self._clear_checkpoints()
                break
            if not self._try_again(status):
                break
        self._close()

    def _until_it_ends(self) -> int:
        due = time.monotonic()
        while self._status is None:
            now = time.monotonic()
            if now >= self._settles_at:
                self._settles_at = float("inf")
                give_back_freed()
                lock_memory()
            if now >= due:
                due = now + self._watch.tick(time.time())
                if self._guard is not None:
                    self._guard.trainers(self._watch.trainers())
            self._serve(min([due, *(at for at, _ in self._to_forward)]) - time.monotonic())
            self._end_what_does_not_hear()
            self._status = self._as_asked(reap().get(self._script_pid, self._unkillable()))
        return self._status

    def _end_job(self, decision: Decision) -> str:
        """One that stands still. Its processes cannot be asked to leave: they do not run."""
        self._watch.say(f"holdfast: {decision.text}")
        self._job_ended_at = time.monotonic()
        return f"ended {stop_all(partial(job_processes, self._script_pid), lambda: None)} processes"

    def _unkillable(self) -> int | None:
        """A process that waits for a device takes no signal, not even this one, until the device answers."""
        if self._job_ended_at is None or time.monotonic() - self._job_ended_at < UNKILLABLE_S:
            return None
        self._watch.event("script.unkillable", pid=self._script_pid)
        self._watch.say(f"holdfast: process {self._script_pid} waits for a device and cannot be ended; left behind")
        self._left_behind = True
        return int(signal.SIGKILL)

    def _end_what_does_not_hear(self) -> None:
        """A signal that would have ended the script, had we not taken its default effect, and native code hangs."""
        number = self._watch.unanswered_signals.overdue()
        if number is None or self._ended_for:
            return
        name = signal_name(number)
        text = f"the script does not react to {name}, as if native code hung in it; ended as {name} would have done"
        decision = Decision(DecisionKind.END, f"unheard:{name}", text)
        self._watch.decided(decision)
        self._ended_for = number
        self._job_ended_at = time.monotonic()
        signals.give(
            self._script_pid, signal.SIGKILL, to_group=False
        )  # an unreaped child: its pid cannot have been reused
        self._watch.acted(decision, warn.carry_out(decision, self._watch.say))

    def _as_asked(self, status: int | None) -> int | None:
        """Where our SIGKILL stood in for another signal, the status is reported as that signal."""
        return self._ended_for if self._ended_for and status == signal.SIGKILL else status

    def _clear_checkpoints(self) -> None:
        """A run that has finished is not resumed, and its state may be gigabytes."""
        if self._spec.directory is not None:
            forget_exact_command(self._spec.directory)
        if self._spec.checkpoints is not None and self._spec.checkpoints.is_dir():
            shutil.rmtree(self._spec.checkpoints, ignore_errors=True)
            self._watch.event("checkpoints.removed")

    def _close(self) -> None:
        self._link.tell("over")
        while self._relay_here and not self._flushed:  # the relay may be blocked in a write to a pager
            self._serve(0.5)
        if self._drained:
            self._drain_all()
        self._control.close()
        self._watch.event("run.end")
        self._say_closing_words()
        self._link.tell("recorded", lost=self._watch.close())
        if not self._relay_here and self._status != 0 and (self._spec.on_failure or self._spec.notify):
            from holdfast.supervisor import after_failure  # noqa: PLC0415 - few need it

            after_failure.start(self._spec)

    def _say_closing_words(self) -> None:
        spec, failed = self._spec, self._status != 0
        if spec.policy == Policy.OBSERVE or spec.directory is None:
            return
        if failed:
            self._attempts.judge_last(self._watch)
        verdict, trained = self._attempts.verdict if failed else None, self._attempts.trained
        for line in self._watch.happenings.lines(spec.policy, verdict, trained, spec.why_command):
            self._watch.say(line)

    # -- an attempt that failed

    def _try_again(self, status: int) -> bool:
        """True when another attempt is running; else its end is recorded as that of the run."""
        exit, ended_at = Exit.by(status), time.time()
        self._link.tell(
            "attempt-over", status=status
        )  # if the watcher is killed from here on, this attempt was the last
        self._hear_its_last_words()
        look_for_the_reason(self._watch, status, idle=self._serve)
        decision = self._attempts.judge(self._watch, exit.event(ended_at))
        self._watch.decided(decision)
        if decision.restart is not None:
            self._watch.record(exit.event(ended_at, attempt=self._attempts.number - 1))
            self._watch.acted(decision, self._start_again(decision, decision.restart))
            if self._status is None:
                return True
            if self._asked_to_stop:
                status, ended_at = self._asked_to_stop, time.time()
                exit = Exit.by(status, waiting=True)
        elif decision.kind == DecisionKind.STOP:
            self._watch.acted(decision, warn.carry_out(decision, self._watch.say))
        self._link.tell("exit", status=status)
        self._watch.record(exit.event(ended_at))
        leave_nothing_behind(self._watch, idle=self._serve)
        return False

    def _hear_its_last_words(self) -> None:
        self._passed_on = False
        until = time.monotonic() + LAST_WORDS_S
        while self._relay_here and not self._passed_on and time.monotonic() < until:
            self._serve(0.05)
        if self._drained:
            self._drain_all()

    def _start_again(self, decision: Decision, restart: Restart) -> str:
        """Returns what became of it, for the record."""
        self._watch.say(f"holdfast: {decision.text}")
        leave_nothing_behind(self._watch, idle=self._serve)
        until = time.monotonic() + restart.pause_s
        while time.monotonic() < until and not self._asked_to_stop:
            self._serve(min([until, *(at for at, _ in self._to_forward)]) - time.monotonic())
        if self._asked_to_stop:
            return "asked to stop while waiting"
        number = self._attempts.number
        if restart.anew and self._spec.checkpoints is not None:
            remove_all(str(self._spec.checkpoints))
        self._link.tell("starting")
        try:
            self._script_pid = self._launcher.start(number, True, restart.k)
        except (CannotStart, OSError) as error:
            self._watch.say(f"holdfast: cannot start again: {error}")
            return f"could not be started: {error}"
        self._status, self._ended_for, self._job_ended_at = None, 0, None
        self._link.tell("started", pid=self._script_pid)
        self._launcher.contain(self._script_pid)
        if self._guard is not None:
            self._guard.begin(self._script_pid, self._groups)
        self._attempts.began_again(restart.k)
        self._watch.next_attempt(number, self._script_pid, decision.text)
        return f"started as attempt {number}"

    # -- what comes in

    def _serve(self, patience_s: float) -> None:
        """Waits at most so long for the relay, a signal or output that is ours to drain."""
        for key, _ in self._selector.select(max(0.0, patience_s)):
            if key.fileobj is self._link:
                self._hear()
            elif key.fileobj is self._guard:
                self._hear_the_guard()
            elif key.fileobj is self._control.server:
                self._control.hear(script_runs=self._status is None)
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
            elif packet["kind"] == "passed-on":
                self._passed_on = True
            elif packet["kind"] == "reader-gone":
                self._close_source(packet["stream"])
            else:
                self._watch.event(packet.pop("kind"), **packet)

    def _hear_the_guard(self) -> None:
        if self._guard is None:
            return
        for event in self._guard.receive() or ():
            guard_events.take(self._watch, event)
        if self._guard.lost:
            self._selector.unregister(self._guard)
            self._guard = None
            let_go(self._groups)
            self._watch.event("guard.lost", released=release_held())
            self._control.hold_again()

    def _answered(self, event: Event) -> None:
        """The training process has carried out what the guard or a person asked for."""
        if self._guard is not None:
            self._guard.answer(event)
        self._control.heard(event)

    def _relieve_the_guard(self) -> None:
        """An attempt is over. What the guard told before the end comes before the end in the record."""
        self._hear_the_guard()
        self._control.attempt_over()
        if self._guard is not None:
            self._guard.rest()

    def _forward_due(self) -> None:
        """Passes a signal on once. Where we got it too, it was sent to every process, the script included."""
        now = time.monotonic()
        for at, packet in [item for item in self._to_forward if item[0] <= now]:
            self._to_forward.remove((at, packet))
            number = packet["number"]
            everybody = abs(self._witnessed.get(number, float("-inf")) - packet["at"]) < TOGETHER_S
            if self._status is not None:
                if number in signals.ASK_TO_STOP and not self._launcher.ignores(number):
                    self._asked_to_stop = number
            else:
                if number in signals.ASK_TO_STOP:
                    self._control.resume()
                if not everybody:
                    signals.give(self._script_pid, number, packet["to_group"])
                self._watch.unanswered_signals.given(number)
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
        self._drained = DrainedOutput(self._spec)
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
