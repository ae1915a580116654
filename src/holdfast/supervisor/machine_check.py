"""Tells, once a run, what `holdfast check` would call bad about this machine. In a thread: neither script nor watcher waits."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path

from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Event, Sample

BEGIN_AFTER_S = (
    0.9  # at the second turn: the script has the machine to itself while it starts; what is over sooner trains nothing
)
PATIENCE_S = 10.0  # for what may be slow: a driver that sleeps, a disk that others use
KIND = "check.bad"


class MachineCheck:
    def __init__(self, spec: RunSpec, asked_for: bool) -> None:
        self._spec = spec
        self._found: deque[tuple[str, str, str]] = deque()
        self._first_look: float | None = None
        self._begun = not asked_for

    def look(self, now: float) -> list[Sample | Event]:
        if self._first_look is None:
            self._first_look = now
        elif not self._begun and now - self._first_look >= BEGIN_AFTER_S:
            self._begun = True
            self._begin()
        return self.found(now)

    def found(self, now: float) -> list[Sample | Event]:
        """What was not told yet."""
        events: list[Sample | Event] = []
        while self._found:
            id, text, fix = self._found.popleft()
            events.append(Event(KIND, now, {"id": id, "text": text, "fix": fix}))
        return events

    def _begin(self) -> None:
        try:
            threading.Thread(target=self._look, name="holdfast-check", daemon=True).start()
        except RuntimeError:  # no thread can be started; the probes tell of that
            return

    def _look(self) -> None:
        from holdfast.checks import CHECKS  # noqa: PLC0415 -- not before the script has started
        from holdfast.checks.contract import Here  # noqa: PLC0415
        from holdfast.checks.runner import look_at_all  # noqa: PLC0415

        here = Here(
            runs=self._spec.directory or self._spec.cwd,
            cwd=Path(self._spec.cwd),
            python=self._spec.command[0],
            job_runs=True,
        )
        for line in look_at_all(here, [check for check in CHECKS if check.beside_a_run], PATIENCE_S):
            if line.status == "bad":
                self._found.append((line.id, line.text, line.fix))
