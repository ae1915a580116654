"""One turn of the loop: look, record, detect, decide, act. The flow of the whole project on one screen.

Nothing here waits for a disk: the journal, and what is kept for later runs, is written by the journal's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from holdfast import detectors
from holdfast.actions import examine as asking
from holdfast.actions import warn as saying
from holdfast.detectors.exhaustion import pace_s
from holdfast.detectors.leak import LEAKS
from holdfast.detectors.runner import DetectorRunner
from holdfast.inside import ring_location
from holdfast.policy import examine, hang, not_working, warn
from holdfast.recorded_events import Exit, RecordedAction, RecordedDecision, RecordedFinding
from holdfast.supervisor import known_micro_batches, notices
from holdfast.supervisor.closing_words import Happenings
from holdfast.supervisor.guard_questions import GuardQuestions
from holdfast.supervisor.journal_thread import JournalThread
from holdfast.supervisor.machine_check import MachineCheck
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.run_start import opening_events, started_at
from holdfast.supervisor.sources import Sources
from holdfast.supervisor.unanswered_signals import UnansweredSignals
from holdfast.vocabulary import Decision, DecisionKind, Event, Finding, Output, Policy, Sample, Window
from holdfast.windows import NOTHING, Reads, WindowBuilder

QUIET_PACE_S = 1.0  # between two turns while nothing is tight
GOODBYE = "inside.goodbye"


class Watch:
    """Watches and records one run: in the watcher or, where that was killed, in the relay."""

    def __init__(
        self,
        spec: RunSpec,
        stream: str,
        script_pid: int,
        say: Callable[[str], bool],
        read_at_the_end: Reads = NOTHING,
        *,
        check_machine: bool = False,
    ) -> None:
        """`read_at_the_end`: what is asked of an attempt's window once it is over, by whoever judges it."""
        self._spec = spec
        self.policy = spec.policy
        self.say = say
        self._journal = JournalThread(spec.directory / "journal", stream) if spec.directory else None
        self._detectors = DetectorRunner(detectors.WHILE_RUNNING)
        self._last_detectors = DetectorRunner(detectors.ONCE_AFTER_EXIT)
        self.guard_questions = GuardQuestions()
        self.happenings = Happenings()
        self._machine = MachineCheck(spec, asked_for=check_machine)
        self.end_job: Callable[[Decision], str] = lambda _: "left to whoever started it"  # the watcher can do more
        self._decided_at: dict[str, float] = {}
        self._told: dict[str, Finding] = {}
        self._stood_s = 0.0
        self._window = WindowBuilder(detectors.READ_WHILE_RUNNING | read_at_the_end | Reads(events=(GOODBYE,)))
        self._begin(script_pid)
        for event in opening_events(spec, script_pid, time.time()):
            self.record(event)

    # -- the flow

    def tick(self, now: float) -> float:
        """Returns the seconds until the next one."""
        events = self._record(self._sources.read(now) + self._machine.look(now), now)
        window = self._window.window(detectors.READ_WHILE_RUNNING)
        findings = self._detectors.find(window)
        events += self._record(self._detectors.switched_off(now), now)
        self._act_on(findings, events, now)
        self._see_it_move()
        return self._pace_s(window, now)

    def closing_look(self, now: float) -> None:
        """The last turn, right after the script has ended."""
        events = self._record(self._sources.read_at_the_end(now) + self._machine.found(now), now)
        findings = self._last_detectors.find(self._window.window(detectors.READ_WHILE_RUNNING))
        events += self._record(self._last_detectors.switched_off(now), now)
        self._act_on(findings, events, now)

    def _record(self, readings: Sequence[Sample | Event], now: float) -> list[Event]:
        """Into the window and the journal, and to whoever waits for one of the events; returns those."""
        samples = [reading for reading in readings if isinstance(reading, Sample)]
        events = [reading for reading in readings if isinstance(reading, Event)]
        self._window.take(samples)
        if self._journal and samples:
            self._journal.samples(now, samples)
        for event in events:
            self.record(event)
        self.unanswered_signals.look(events)
        self.guard_questions.hear(events)
        if self._journal and (k := known_micro_batches.newest(events)) is not None:
            self._journal.later(partial(known_micro_batches.remember, self._spec, k))
        for line in notices.lines(events, self.policy):
            self.say(line)
        return events

    def _act_on(self, findings: Sequence[Finding], events: Iterable[Event], now: float) -> None:
        for decision in self._decide(findings, events, now):
            self._act(decision, findings, now)
        for cause, told in self._told.items():
            self._told[cause] = next((finding for finding in findings if finding.adds_to(told)), told)

    def _decide(self, findings: Sequence[Finding], events: Iterable[Event], now: float) -> list[Decision]:
        known = self._decided_at
        return [
            *not_working.decide(events, self.policy, known),
            *examine.decide(findings, self.policy, known, now),
            *warn.decide(findings, self.policy, known, now),
            *hang.decide(findings, self.policy, known, self._spec.hang_timeout_s),
        ]

    def _act(self, decision: Decision, findings: Iterable[Finding], now: float) -> None:
        """The intent is recorded before the act, the result after it."""
        self._decided_at[decision.key] = now
        for finding in findings:
            if finding.key == decision.key:
                self._told[finding.cause] = finding
                self.record(RecordedFinding.by(finding).event(time.time()))
        self.decided(decision)
        self.acted(decision, self._carry_out(decision))

    def _carry_out(self, decision: Decision) -> str:
        if decision.kind == DecisionKind.EXAMINE and self._sources.training is not None:
            return asking.carry_out(decision, self._sources.training.send)
        if decision.kind == DecisionKind.END:
            return self.end_job(decision)
        return saying.carry_out(decision, self.say)

    def _see_it_move(self) -> None:
        """A job that was said to stand still goes on after all: that is said, too, and the next time it is told anew."""
        silent_s, told = self._sources.standstill.silent_s, hang.told_in(self._decided_at)
        if told and silent_s < self._stood_s:
            self.event("hang.over", stood_s=self._stood_s)
            if self.policy != Policy.OBSERVE:
                self.say(f"holdfast: it moves again, after {self._stood_s:.0f} s")
            self._decided_at = {key: at for key, at in self._decided_at.items() if key not in told}
            self._told = {cause: finding for cause, finding in self._told.items() if finding.standstill is None}
        self._stood_s = silent_s

    def _pace_s(self, window: Window, now: float) -> float:
        return min(
            QUIET_PACE_S,
            self._detectors.alone("pace", pace_s, window, otherwise=QUIET_PACE_S),
            self._sources.pace_s,
            self.guard_questions.pace_s(now),
            examine.pace_s(self._decided_at, now),
        )

    # -- one attempt, and the next

    def _begin(self, script_pid: int) -> None:
        """What is known of one attempt's processes is of no use for the next."""
        self._sources = Sources(self._spec, script_pid)
        self.unanswered_signals = UnansweredSignals(script_pid, self._spec.channel)
        self.guard_questions.forget()

    def next_attempt(self, number: int, script_pid: int, reason: str) -> None:
        self._sources.close()
        self.unanswered_signals.close()
        self._window.begin_again()
        self._told.clear()
        self._begin(script_pid)
        # Memory growth starts from zero in a new process, so it is examined and told again.
        anew, stood = (examine.KEY, hang.KEY, *LEAKS), hang.told_in(self._decided_at)
        known = self._decided_at.items()
        self._decided_at = {key: at for key, at in known if not key.startswith(anew) and key not in stood}
        self._stood_s = 0.0
        started = started_at(script_pid)
        self.event("attempt.start", attempt=number, reason=reason, script_pid=script_pid, script_started=started)

    def attempt_window(self, ended: Event | None = None) -> Window:
        """This attempt, as `why` would read it, had it been the last. `ended`, where its end is not recorded yet."""
        self._window.take([ended] if ended is not None else [])
        return self._window.window()

    @property
    def told(self) -> list[Finding]:
        """What was found while this attempt went on, each cause as it was told last."""
        return list(self._told.values())

    def report_switched_off(self, events: Sequence[Event], now: float) -> None:
        """Detectors that failed elsewhere, where an attempt was judged."""
        for decision in self._decide([], self._record(events, now), now):
            self._act(decision, [], now)

    # -- what others ask of the watch

    def ask(self, do: str, id: str) -> bool:
        """Passes a request of the guard to the training process; the answer goes to `guard_questions.on_answer`."""
        return self.guard_questions.ask(self._sources.training, do, id)

    def trainers(self) -> list[int]:
        return self._sources.training.trainers() if self._sources.training is not None else []

    def event(self, kind: str, **data: Any) -> None:
        self.record(Event(kind, time.time(), data))

    def record(self, event: Event) -> None:
        self._window.take([event])
        self.happenings.take(event)
        if self._journal:
            self._journal.event(event)

    def output(self, piece: Output) -> None:
        self._sources.standstill.heard_output()
        self._window.take([piece])
        if self._journal:
            self._journal.output(piece)

    def decided(self, decision: Decision) -> None:
        self.record(RecordedDecision.by(decision).event(time.time()))

    def acted(self, decision: Decision, result: str) -> None:
        self.record(RecordedAction(decision.key, decision.text, result).event(time.time()))

    def script_gone(self) -> None:
        """For a process that is not our child: its exit status is unknown, and a goodbye from inside means success."""
        gone = Event("script.gone", time.time())
        self.record(Exit(0).event(time.time()) if self._window.window().event(GOODBYE) else gone)

    def close(self, patience_s: float = 2.0) -> int:
        """Returns how many records could not be written."""
        self.unanswered_signals.close()
        for runner in (self._detectors, self._last_detectors):
            runner.close()
        if self._spec.channel is not None:
            ring_location.clear(str(self._spec.channel))
        if self._journal is None:
            return 0
        written = self._journal.close(patience_s)
        return self._journal.lost_records + (0 if written else 1)
