"""A run's record as TensorBoard event files: scalars at the run's steps, the verdict and what was noticed as text.

Needs the extra `tensorboard`; its own writer is used, and TensorFlow is not imported.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.masking import masked_text
from holdfast.recorded_events import RecordedDecision, RecordedFinding
from holdfast.views.safe_text import safe
from holdfast.views.timeline import said_of
from holdfast.vocabulary import Event, Sample

# Present, it tells tensorboard to do without TensorFlow, whose import takes seconds and half a gigabyte.
sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))

from tensorboard.compat.proto import event_pb2  # noqa: E402
from tensorboard.plugins.text.summary_v2 import text_pb  # noqa: E402
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: E402

SUFFIX = ".holdfast"  # of our files, which are made anew each time; others in the folder are not touched
STEPS = "train.steps_count"
FLUSH_S = 5  # what a live run has written is to be seen soon
TEXT_TAG, VERDICT_TAG = "holdfast/timeline", "holdfast/verdict"


class TensorBoardRun:
    """One run's folder. Records are given in the order of time."""

    def __init__(self, folder: Path, by_seconds: bool) -> None:
        """`by_seconds`: of a run that never trained, seconds since it began stand for its steps."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"events.out.tfevents.*{SUFFIX}"):
            old.unlink()
        self._writer: Any = EventFileWriter(str(folder), flush_secs=FLUSH_S, filename_suffix=SUFFIX)
        self._by_seconds = by_seconds
        self._began: float | None = None
        self._step = 0
        self._moment: dict[int, Any] = {}  # the values of one moment, by their step: one event each, not one a value
        self._moment_at = 0.0
        self.scalars = self.texts = 0

    def take(self, record: Sample | Event) -> None:
        if self._began is None:
            self._began = record.at
        if isinstance(record, Event):
            self._say(record)
            return
        if record.name == STEPS and record.value is not None:
            self._step = int(record.value)
        if record.value is not None:
            self._scalar(record, record.value)

    def verdict(self, text: str, at: float) -> None:
        """Preformatted: what a script printed is text, and no markup."""
        self._text(VERDICT_TAG, "\n".join(f"    {safe(masked_text(line))}" for line in text.splitlines()), at)

    def flush(self) -> None:
        self._write_moment()
        self._writer.flush()

    def close(self) -> None:
        self._write_moment()
        self._writer.close()

    def _scalar(self, sample: Sample, value: float) -> None:
        if sample.at != self._moment_at:
            self._write_moment()
            self._moment_at = sample.at
        step = self._step_of(sample.at) if sample.step is None else sample.step
        event = self._moment.get(step)
        if event is None:
            event = self._moment[step] = event_pb2.Event(wall_time=sample.at, step=step)
        event.summary.value.add(tag=_tag(sample.name), simple_value=value)
        self.scalars += 1

    def _write_moment(self) -> None:
        for event in self._moment.values():
            self._writer.add_event(event)
        self._moment.clear()

    def _say(self, event: Event) -> None:
        if event.kind == RecordedFinding.KIND:
            found = RecordedFinding.of(event)
            text = f"{found.cause} ({found.confidence:.0%}): {next(iter(found.evidence), found.headline)}"
            self._text(f"holdfast/noticed/{found.cause}", f"    {_line(text)}", event.at)
        elif event.kind == RecordedDecision.KIND:
            self._text(TEXT_TAG, f"    {_line(RecordedDecision.of(event).text)}", event.at)
        elif (said := said_of(event)) is not None:
            self._text(TEXT_TAG, f"    {_line(said[0])}", event.at)

    def _text(self, tag: str, text: str, at: float) -> None:
        self._write_moment()
        event = event_pb2.Event(wall_time=at, step=self._step_of(at), summary=text_pb(tag, text))
        self._writer.add_event(event)
        self.texts += 1

    def _step_of(self, at: float) -> int:
        return int(at - (self._began or at)) if self._by_seconds else self._step


@lru_cache(maxsize=4096)
def _tag(name: str) -> str:
    """`train.loss` -> `train/loss`: TensorBoard groups charts by what stands before the first slash."""
    group, dot, rest = name.partition(".")
    return f"{group}/{rest}" if dot else name


def _line(text: str) -> str:
    return " ".join(safe(masked_text(text)).split())
