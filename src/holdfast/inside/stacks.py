"""Stacks of every thread on demand, also when nothing runs any more: a signal that faulthandler answers in C."""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import Any

from .telemetry import Recorder


def install(recorder: Recorder, channel: str) -> None:
    """A real-time signal near the top, which nobody was seen to use; left alone where somebody does."""
    number = signal.SIGRTMAX - 7
    if signal.getsignal(number) is not signal.SIG_DFL:
        recorder.event("stacks.unavailable", reason=f"signal {int(number)} is in use")
        return
    path = os.path.join(channel, f"{os.getpid()}.stacks")
    kept: Any = open(path, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    faulthandler.register(number, file=kept, all_threads=True, chain=False)
    recorder.event("stacks.ready", signal=int(number), path=path)
