"""Events that one room records and another reads: their names and keys on disk stand here and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, ClassVar

from holdfast.vocabulary import NOT_WORKING, Decision, Event, Finding, Window

RESTORED = "checkpoint.restored"  # a training process goes on from there
FIRST_TRAINER = "train.first"  # which process the signals `train.…` are of; those of others are `train[PID].…`


@dataclass(frozen=True, slots=True)
class RecordedFinding:
    """A finding that was decided about while the run went on."""

    KIND: ClassVar[str] = "finding"

    cause: str
    confidence: float
    key: str
    evidence: tuple[str, ...]
    headline: str = ""
    holder: str = ""

    @classmethod
    def by(cls, finding: Finding) -> RecordedFinding:
        evidence = tuple(item.text for item in finding.evidence)
        holder = finding.growth.holder if finding.growth is not None else ""
        return cls(finding.cause, finding.confidence, finding.key, evidence, finding.headline, holder)

    def event(self, at: float) -> Event:
        about = {"cause": self.cause, "confidence": self.confidence, "key": self.key, "evidence": list(self.evidence)}
        return Event(self.KIND, at, about | {"headline": self.headline or None, "holder": self.holder or None})

    @classmethod
    def of(cls, event: Event) -> RecordedFinding:
        data = event.data
        cause, confidence = str(data.get("cause", "")), float(data.get("confidence") or 0.0)
        evidence = tuple(str(text) for text in data.get("evidence") or ())
        headline, holder = str(data.get("headline") or ""), str(data.get("holder") or "")
        return cls(cause, confidence, str(data.get("key", "")), evidence, headline, holder)


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """The intent, recorded before it is carried out."""

    KIND: ClassVar[str] = "decision"

    decision: str  # a DecisionKind, or what a later version calls one
    key: str
    text: str

    @classmethod
    def by(cls, decision: Decision) -> RecordedDecision:
        return cls(decision.kind, decision.key, decision.text)

    def event(self, at: float) -> Event:
        return Event(self.KIND, at, {"decision": str(self.decision), "key": self.key, "text": self.text})

    @classmethod
    def of(cls, event: Event) -> RecordedDecision:
        data = event.data
        return cls(str(data.get("decision", "")), str(data.get("key", "")), str(data.get("text", "")))


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """What became of a decision."""

    KIND: ClassVar[str] = "action"

    key: str
    decision: str  # in words
    result: str

    @property
    def is_about_us(self) -> bool:
        """About something of Holdfast's that does not work, not about the run."""
        return self.key.startswith(NOT_WORKING)

    def event(self, at: float) -> Event:
        return Event(self.KIND, at, {"key": self.key, "decision": self.decision, "result": self.result})

    @classmethod
    def of(cls, event: Event) -> RecordedAction:
        data = event.data
        return cls(str(data.get("key", "")), str(data.get("decision", "")), str(data.get("result", "")))


@dataclass(frozen=True, slots=True)
class WentOn:
    """After a value that was not finite, or a label out of range: what the training process did so that it could go on."""

    KIND: ClassVar[str] = "numerics.went_on"
    SUBJECT: ClassVar[str] = "non-finite"  # of the finding about such a value
    NOT_FINITE: ClassVar[str] = "not finite"
    LABELS: ClassVar[str] = "fed with bad labels"

    step: int
    text: str
    was: str = NOT_FINITE  # what was wrong with the step

    @classmethod
    def of(cls, event: Event) -> WentOn:
        data = event.data
        text = str(data.get("text") or data.get("how") or "")
        return cls(int(data.get("step") or 0), text, str(data.get("was") or cls.NOT_FINITE))


@dataclass(frozen=True, slots=True)
class Exit:
    """How a script ended: the run's last attempt, or one that was followed by another."""

    KIND: ClassVar[str] = "script.exit"
    OF_AN_ATTEMPT: ClassVar[str] = "attempt.exit"

    code: int  # 128+N for a signal
    signal: int | None = None
    waiting: bool = False  # asked to stop between two attempts, while no script ran

    @classmethod
    def by(cls, status: int, waiting: bool = False) -> Exit:
        """By a status as `waitpid` gives it."""
        code = os.waitstatus_to_exitcode(status)
        return cls(code if code >= 0 else 128 - code, -code if code < 0 else None, waiting)

    def event(self, at: float, attempt: int | None = None) -> Event:
        about: dict[str, Any] = {"code": self.code, "signal": self.signal}
        if self.waiting:
            about["waiting"] = True
        return (
            Event(self.KIND, at, about)
            if attempt is None
            else Event(self.OF_AN_ATTEMPT, at, {"attempt": attempt, **about})
        )

    @classmethod
    def of(cls, event: Event) -> Exit:
        data, number = event.data, event.data.get("signal")
        return cls(int(data.get("code", 1)), None if number is None else int(number), bool(data.get("waiting")))


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """Into how many pieces a training process has come to cut its batches."""

    KIND: ClassVar[str] = "rescue.k"

    k: int
    where: str = "train"

    @classmethod
    def of(cls, event: Event) -> MicroBatches:
        return cls(int(event.data.get("k") or 1), str(event.data.get("where") or "train"))


@dataclass(frozen=True, slots=True)
class KeptByInput:
    """What a part of the input pipeline keeps in memory at most, by the sizes it declares."""

    KIND: ClassVar[str] = "data.kept"

    what: str  # shuffle, prefetch or cache
    elements: int
    element_bytes: int
    at: float

    @property
    def bytes(self) -> int:
        return self.elements * self.element_bytes

    @property
    def call(self) -> str:
        return "dataset.cache()" if self.what == "cache" else f"dataset.{self.what}({self.elements})"

    @classmethod
    def of(cls, event: Event) -> KeptByInput:
        data = event.data
        return cls(str(data.get("what")), int(data.get("elements", 0)), int(data.get("element_bytes", 0)), event.at)

    @classmethod
    def largest(cls, window: Window) -> KeptByInput | None:
        return max((cls.of(event) for event in window.events(cls.KIND)), key=lambda one: one.bytes, default=None)


@dataclass(frozen=True, slots=True)
class PipelineCall:
    """One of the calls that a tf.data pipeline is made of, which does something to each row."""

    call: str  # map, interleave, tfrecord…
    does: tuple[str, ...]  # read, decode, resize, augment, python
    operations: tuple[str, ...]
    parallel: bool
    function: str
    place: str

    @property
    def words(self) -> str:
        where = f", {PurePath(self.place).name}" if self.place else ""
        return f"{self.call}({self.function}){where}"


@dataclass(frozen=True, slots=True)
class InputPipeline:
    """What a tf.data pipeline does, from the first call to the last."""

    KIND: ClassVar[str] = "data.pipeline"

    calls: tuple[PipelineCall, ...]
    ahead: bool

    @classmethod
    def of(cls, event: Event) -> InputPipeline:
        calls = tuple(
            PipelineCall(
                str(one.get("call", "")), tuple(one.get("does", ())), tuple(one.get("operations", ())),
                bool(one.get("parallel")), str(one.get("function", "")), str(one.get("place", "")),
            )
            for one in event.data.get("calls", ())
        )  # fmt: skip
        return cls(calls, bool(event.data.get("ahead")))

    @classmethod
    def of_training(cls, window: Window) -> InputPipeline | None:
        """The one that does most: a run may have others, for validation or for a look at the data."""
        told = [cls.of(event) for event in window.events(cls.KIND)]
        return max(told, key=lambda one: sum(len(call.does) for call in one.calls), default=None)


@dataclass(frozen=True, slots=True)
class GuardAct:
    """What the guard saw of one place where memory may end, when it asked, held or stopped the job."""

    STOPPED: ClassVar[str] = "guard.stopped"
    HELD: ClassVar[str] = "guard.held"
    ASKED: ClassVar[str] = "guard.ask"

    what: str  # the place, in words
    cause: str
    taken_bytes: float
    whole_bytes: float
    per_s: float  # how fast it grew, in bytes
    stalled_s: float  # for how long everybody had waited for memory
    victim: str
    whole_job: bool  # or one helper of it
    checkpoint_saved_s_ago: float | None

    @classmethod
    def of(cls, event: Event) -> GuardAct:
        data = event.data
        taken, whole, per_s, stalled_s = (
            float(data.get(name) or 0.0) for name in ("taken_bytes", "whole_bytes", "per_s", "stalled_s")
        )
        saved = data.get("checkpoint_saved_s_ago")
        return cls(
            what=str(data.get("what", "memory")),
            cause=str(data.get("cause", "")),
            taken_bytes=taken,
            whole_bytes=whole,
            per_s=per_s,
            stalled_s=stalled_s,
            victim=str(data.get("victim", "")),
            whole_job=bool(data.get("whole_job")),
            checkpoint_saved_s_ago=None if saved is None else float(saved),
        )


@dataclass(frozen=True, slots=True)
class DetectorOff:
    """A detector that raised or was too slow, and is not called any more."""

    KIND: ClassVar[str] = "detector.off"

    detector: str
    reason: str
    frames: tuple[str, ...] = ()  # the last ones of the traceback, outermost first

    @property
    def key(self) -> str:
        """Of the decision that tells it."""
        return f"{NOT_WORKING}detector:{self.detector}"

    @property
    def sentence(self) -> str:
        return (
            f"a check of Holdfast's failed and is switched off: {self.detector}: {self.reason}; everything else goes on"
        )

    def event(self, at: float) -> Event:
        return Event(self.KIND, at, {"detector": self.detector, "reason": self.reason, "frames": list(self.frames)})

    @classmethod
    def of(cls, event: Event) -> DetectorOff:
        data = event.data
        frames = tuple(str(frame) for frame in data.get("frames") or ())
        return cls(str(data.get("detector", "?")), str(data.get("reason", "no reason was given")), frames)
