"""Native code crashed: segmentation fault, abort, bus error, illegal instruction, arithmetic fault."""

from __future__ import annotations

import signal

from holdfast.detectors.endings import ENDING, KERNEL_LINES, ending, kernel_lines
from holdfast.vocabulary import Finding, Window, signal_name
from holdfast.windows import reads

CRASHES = {
    signal.SIGSEGV: "Segmentation fault in native code",
    signal.SIGABRT: "Native code aborted the process",
    signal.SIGBUS: "Bus error in native code",
    signal.SIGFPE: "Arithmetic fault in native code",
    signal.SIGTRAP: "Native code hit a trap",
}


@reads(ENDING, KERNEL_LINES)
def find(window: Window) -> Finding | None:
    how = ending(window)
    if how is None:
        return None
    kernel = tuple(kernel_lines(window, r"\[(?P<pid>\d+)\](?::| ) ?(?:segfault|general protection|trap)"))[:2]
    if how.signal == signal.SIGILL:
        return Finding("illegal-instruction", 0.93 if how.direct else 0.4, (how.evidence(), *kernel))
    if how.signal not in CRASHES:
        return None
    headline = f"{CRASHES[signal.Signals(how.signal)]} ({signal_name(how.signal)})"
    return Finding("native-crash", 0.9 if how.direct or kernel else 0.4, (how.evidence(), *kernel), headline=headline)
