"""The main thread's stack on demand, also while native code runs: a signal that faulthandler answers in C.

Asked for before the first step only, while memory rises (`supervisor/startup_stacks.py`). The handler stays: without it the
signal's default effect is to end the process, and one may be on its way. Other threads run on meanwhile, and walking through
their stacks is not safe.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import Any

from .telemetry import Recorder

SIGNAL = signal.SIGRTMAX - 8  # near the top, where nobody was seen to use one; left alone where somebody does


def install(recorder: Recorder, channel: str) -> None:
    if signal.getsignal(SIGNAL) is not signal.SIG_DFL:
        recorder.event("stack.unavailable", reason=f"signal {int(SIGNAL)} is in use")
        return
    path = os.path.join(channel, f"{os.getpid()}.stack")
    kept: Any = open(path, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    faulthandler.register(SIGNAL, file=kept, all_threads=False, chain=False)
    recorder.event("stack.ready", signal=int(SIGNAL), path=path)
