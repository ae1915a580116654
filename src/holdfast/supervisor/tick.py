"""One turn of the loop: look, record, detect, decide, act. The flow of the whole project on one screen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.actions import examine as asking
from holdfast.actions import warn as saying
from holdfast.detectors import data_exhausted, find_troubles
from holdfast.detectors.exhaustion import pace_s
from holdfast.detectors.leak import LEAKS
from holdfast.inside import ring_location
from holdfast.policy import examine, not_working, warn
from holdfast.probes import Scope
from holdfast.probes.runner import ProbeRunner
from holdfast.supervisor import known_micro_batches
from holdfast.supervisor.attempt_record import AttemptRecord
from holdfast.supervisor.injection_check import InjectionCheck
from holdfast.supervisor.journal_thread import JournalThread
from holdfast.supervisor.live_window import LiveWindow
from holdfast.supervisor.ring_samples import RingSamples
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.startup_stacks import StartupStacks
from holdfast.supervisor.unanswered_signals import UnansweredSignals
from holdfast.vocabulary import Decision, Event, Finding, Output, Sample, Window

COMMAND_WORDS, COMMAND_CHARACTERS = 200, 1000  # of a command line that may be megabytes long
# After the training process was asked something its answer is waited for; at once where the guard has asked.
ASKED_PACE_S, ASKED_AT_ONCE_S, ASKED_S = 0.25, 0.05, 10.0


class Watch:
    """The eyes and the record of one run. Lives in the watcher; in the relay, should the watcher be killed."""

    def __init__(self, spec: RunSpec, stream: str, script_pid: int, say: Callable[[str], bool]) -> None:
        self._task = spec
        self.policy = spec.policy
        self.say = say
        self._recorder = JournalThread(spec.directory / "journal", stream) if spec.directory else None
        self.on_answer: Callable[[Event], None] = lambda event: None
        self._decided_at: dict[str, float] = {}
        self._attempt = AttemptRecord()
        self._look_at(script_pid)
        self.event(
            "run.start",
            command=shortened_command(spec.command),
            cwd=str(spec.cwd),
            name=spec.name,
            policy=spec.policy,
            memory_bytes=spec.memory_bytes,
            script_pid=script_pid,
            script_started=_started(script_pid),
            watched_by=os.getpid(),
            watcher_started=_started(os.getpid()),
            holdfast=__version__,
            options=list(spec.options),
            resumed_from=spec.resumed_from,
            began=spec.began,
        )
        if spec.resumed_from:
            self.event("checkpoint.inherited", run=spec.resumed_from, step=spec.resumed_step)

    def _look_at(self, script_pid: int) -> None:
        """What is known of one attempt's processes is of no use for the next."""
        spec = self._task
        directories = (spec.cwd, spec.directory or spec.cwd, Path(os.environ.get("TMPDIR") or "/tmp"))
        self._probes = ProbeRunner(Scope(script_pid, os.getpid(), directories))
        self._training = RingSamples(spec.channel) if spec.channel else None
        self._greeting = InjectionCheck()
        self._startup = StartupStacks(spec.cwd)
        self._recall = LiveWindow()
        self.unheard = UnansweredSignals(script_pid, spec.channel)
        self._goodbye = False
        self._asked_at = 0.0

    def next_attempt(self, number: int, script_pid: int, reason: str) -> None:
        self._probes.close()
        self.unheard.close()
        self._attempt.begin_again()
        self._look_at(script_pid)
        # What grows is found anew in each process, and each attempt is judged by its own record.
        anew = ("examine:", *LEAKS)
        self._decided_at = {key: at for key, at in self._decided_at.items() if not key.startswith(anew)}
        started = _started(script_pid)
        self.event("attempt.start", attempt=number, reason=reason, script_pid=script_pid, script_started=started)

    def attempt_window(self, ended: Event) -> Window:
        """This attempt, as `why` would read it, had it been the last."""
        return self._attempt.window(self._recall.series(), ended)

    def tick(self, now: float) -> float:
        """Returns the seconds until the next one."""
        window = self._look(now, closing=False)
        findings = find_troubles(window)
        for policy in (examine, warn):
            for decision in policy.decide(findings, self._task.policy, self._decided_at, now):
                self._act(decision, findings, now)
        asked_at = max((at for key, at in self._decided_at.items() if key.startswith("examine:")), default=0.0)
        if now - self._asked_at < ASKED_S:
            return ASKED_AT_ONCE_S
        return min(pace_s(window), self._startup.pace_s, ASKED_PACE_S if now - asked_at < ASKED_S else 1.0)

    def closing_look(self, now: float) -> None:
        """Right after the script has ended, before its cgroup and its last lines are gone."""
        window = self._look(now, closing=True)
        last = data_exhausted.find(window)  # a run that stops early often ends within the second
        for decision in warn.decide([last] if last else [], self._task.policy, self._decided_at, now):
            self._act(decision, [last] if last else [], now)

    def script_gone(self) -> None:
        """A process that is not our child has ended: its status is its parent's to know. A goodbye means it was well."""
        self.event("script.exit", code=0, signal=None) if self._goodbye else self.event("script.gone")

    def event(self, kind: str, **data: Any) -> None:
        self.record(Event(kind, time.time(), data))

    def ask(self, do: str, id: str) -> bool:
        """A wish of the guard's to the training process; the answer goes to `on_answer`, soon."""
        self._asked_at = time.time()
        return self._training is not None and self._training.send(do=do, id=id)

    def trainers(self) -> list[int]:
        return self._training.trainers() if self._training is not None else []

    def output(self, piece: Output) -> None:
        self._attempt.output(piece)
        if self._recorder:
            self._recorder.output(piece)

    def close(self, patience_s: float = 2.0) -> int:
        """Returns how many records could not be written."""
        self.unheard.close()
        if self._task.channel is not None:
            ring_location.clear(str(self._task.channel))
        if self._recorder is None:
            return 0
        written = self._recorder.close(patience_s)
        return self._recorder.lost_records + (0 if written else 1)

    def _look(self, now: float, closing: bool) -> Window:
        readings = self._probes.closing(now) if closing else self._probes.poll(now)
        if self._training is not None:
            readings += self._training.read(now)
            readings += self._startup.look(readings, now)
            self._tell_of_silence(self._greeting.missing(readings, self._training.greeted(), now))
        samples = [reading for reading in readings if isinstance(reading, Sample)]
        events = [reading for reading in readings if isinstance(reading, Event)]
        for name, budget in (("memory", self._task.memory_bytes), ("gpu_memory", self._task.gpu_memory_bytes)):
            if budget:
                samples.append(Sample(f"job.{name}_budget_bytes", float(budget), now))
        self._recall.take([*samples, *events])
        self.unheard.look(events)
        if self._recorder and samples:
            self._recorder.samples(now, samples)
        for event in events:
            self.record(event)
            self._say_what_is_missing(event)
            self._goodbye = self._goodbye or event.kind == "inside.goodbye"
            if event.kind == "rescue.k" and event.data.get("where") == "train":
                known_micro_batches.remember(self._task, int(event.data["k"]))
            if event.kind == "command.done":
                self._asked_at = 0.0
                self.on_answer(event)
        for decision in not_working.decide(events, self._task.policy, self._decided_at):
            self._act(decision, [], now)
        return self._recall.window()

    def _act(self, decision: Decision, findings: list[Finding], now: float) -> None:
        self._decided_at[decision.key] = now
        for finding in findings:
            if finding.details.get("key") == decision.key:
                self.event(
                    "finding",
                    cause=finding.cause,
                    confidence=finding.confidence,
                    key=decision.key,
                    evidence=[item.text for item in finding.evidence],
                    headline=finding.details.get("headline"),
                    holder=finding.details.get("holder"),
                )
        self.event("decision", decision=decision.kind, key=decision.key, text=decision.text)
        self.event("action", key=decision.key, decision=decision.text, result=self._carry_out(decision))

    def _carry_out(self, decision: Decision) -> str:
        if decision.kind == "examine" and self._training is not None:
            return asking.carry_out(decision, self._training.send)
        return saying.carry_out(decision, self.say)

    def _tell_of_silence(self, line: str | None) -> None:
        if line is not None:
            self.event("inside.absent", reason=line)
            self.say(f"holdfast: {line}")

    def _say_what_is_missing(self, event: Event) -> None:
        if event.kind == "probe.missing" and event.data.get("tell") and self._task.policy != "observe":
            self.say(f"holdfast: {event.data['reason']}")

    def record(self, event: Event) -> None:
        self._attempt.event(event)
        if self._recorder:
            self._recorder.event(event)


def shortened_command(command: Sequence[str]) -> list[str]:
    return [word[:COMMAND_CHARACTERS] for word in command[:COMMAND_WORDS]]


def _started(pid: int) -> float | None:
    """The process's start in clock ticks since boot: tells it from a later one with the same pid."""
    try:
        return float(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None
