"""When torch.compile compiles: a phase of its own, so that a long first step is not taken for a hang."""

from __future__ import annotations

from typing import Any

from ..never_raise import guarded
from ..ring import PHASES
from ..telemetry import Recorder, now
from . import seams

TOLD = 100  # compilations; a script that recompiles on every batch would fill the record


class Compiling:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.listening = False
        self._began = 0.0
        self._before = "start-up"
        self._told = 0

    def listen(self) -> None:
        """Asked on every batch until the compiler is loaded: never imports it."""
        handler: Any = seams.compile_callbacks()
        if handler is not None:
            self.listening = True
            handler.register_start_callback(guarded(self.started))
            handler.register_end_callback(guarded(self.ended))

    def started(self, *_: Any) -> None:
        self._before = PHASES[self.recorder.phase_number]
        self._began = now()
        if self._told < TOLD:
            self.recorder.phase("compile")

    def ended(self, *args: Any) -> None:
        self._told += 1
        if self._told <= TOLD:
            trigger = getattr(getattr(args[0], "callback_trigger", None), "name", "") if args else ""
            self.recorder.event(
                "train.compiled",
                what=f"torch.compile {trigger.lower().replace('_', ' ')}".strip(),
                seconds=round(now() - self._began, 3),
                step=self.recorder.steps,
            )
            self.recorder.phase(self._before)
