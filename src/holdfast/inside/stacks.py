"""Stacks on demand, also when nothing runs any more: signals that faulthandler answers in C.

One is for all threads, when nothing moves. The other is for the thread that gets it, the main one, and may come while
all is well: where other threads run on, walking through theirs is not safe.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import Any

from .telemetry import Recorder

# Real-time signals near the top, which nobody was seen to use; left alone where somebody does.
EVERY_THREAD, MAIN_THREAD = signal.SIGRTMAX - 7, signal.SIGRTMAX - 8


def install(recorder: Recorder, channel: str) -> None:
    _answer(recorder, EVERY_THREAD, os.path.join(channel, f"{os.getpid()}.stacks"), "stacks", True)
    _answer(recorder, MAIN_THREAD, os.path.join(channel, f"{os.getpid()}.stack"), "stack", False)


def _answer(recorder: Recorder, number: int, path: str, kind: str, all_threads: bool) -> None:
    if signal.getsignal(number) is not signal.SIG_DFL:
        recorder.event(f"{kind}.unavailable", reason=f"signal {int(number)} is in use")
        return
    kept: Any = open(path, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    faulthandler.register(number, file=kept, all_threads=all_threads, chain=False)
    recorder.event(f"{kind}.ready", signal=int(number), path=path)
