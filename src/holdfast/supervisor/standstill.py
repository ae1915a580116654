"""Watches an attempt for silence, and has the stacks of its processes taken when that has lasted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

from holdfast.stack_snapshots import RecordedStacks
from holdfast.supervisor.silence import Limits, Silence
from holdfast.supervisor.stack_taking import StackTaking
from holdfast.vocabulary import Event, Sample


class StandstillWatch:
    """One attempt."""

    def __init__(self, take: StackTaking, limits: Limits) -> None:
        self._silence = Silence(limits)
        self._take = take
        self._records = 0
        self._output = False

    def heard_output(self) -> None:
        self._output = True

    def look(
        self,
        readings: list[Sample | Event],
        records_count: int,
        phase: str,
        steps: dict[int, int],
        now: float,
        *,
        ranks: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Sample | Event]:
        told = self._output or records_count != self._records
        self._output, self._records = False, records_count
        silence, moment = self._silence, time.monotonic()
        silence.turn(moment, readings, told, phase)
        found: list[Sample | Event] = [Sample("job.silent_s", silence.silent_s, now)]
        snapshot = self._take.result()
        if snapshot is not None and silence.silent_s:
            snapshot = snapshot.with_ranks(ranks) if ranks else snapshot
            stacks = RecordedStacks(snapshot, silence.silent_s, silence.soon_s, silence.late_s, phase, steps)
            found.append(stacks.event(now))
        if silence.wanted() and self._take.begin():
            silence.asked(moment)
        return found

    @property
    def silent_s(self) -> float:
        return self._silence.silent_s

    @property
    def pace_s(self) -> float:
        return 0.25 if self._take.under_way else 1.0
