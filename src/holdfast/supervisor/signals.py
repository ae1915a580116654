"""The relay's signals, taken by a thread of their own: the main thread may sit in a write to a stalled terminal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Faults are our own; stops, children and the window's size are handled; SIGURG is noise by default.
NOT_FORWARDED = "KILL STOP CHLD CONT WINCH TSTP TTIN TTOU PIPE SEGV BUS FPE ILL TRAP SYS URG PROF XFSZ"
FORWARDED = tuple(sorted(signal.valid_signals() - {getattr(signal, f"SIG{name}") for name in NOT_FORWARDED.split()}))
HANDLED = (*FORWARDED, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH, signal.SIGCHLD)
ASK_TO_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGXCPU)
SI_KERNEL = 0x80
TWICE_S = 0.05  # the same signal within this time is one that was sent to process and group


@dataclass(frozen=True, slots=True)
class Received:
    number: int
    sender_pid: int
    sender_name: str
    to_group: bool  # a terminal's Ctrl-C, `timeout` and the like mean the whole group


def block() -> set[int]:
    """Blocks what the thread takes; returns the former mask, which the script gets back."""
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)}


def start_thread(on_signal: Callable[[Received], None]) -> None:
    try:
        threading.Thread(target=_take_for_ever, args=(on_signal,), daemon=True, name="signals").start()
    except RuntimeError:  # no more threads are allowed here: plain handlers, which know no sender
        for number in HANDLED:
            signal.signal(number, lambda got, _: on_signal(Received(got, 0, "", to_group=False)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)


def _take_for_ever(on_signal: Callable[[Received], None]) -> None:
    while True:
        info = signal.sigwaitinfo(HANDLED)
        on_signal(_received(info))


def _received(info: signal.struct_siginfo) -> Received:
    from_kernel = info.si_code == SI_KERNEL
    sender = 0 if from_kernel else info.si_pid
    name = ""
    same_group = False
    if sender and info.si_signo != signal.SIGCHLD:
        try:
            name = Path(f"/proc/{sender}/comm").read_text().strip()
            same_group = os.getpgid(sender) == os.getpgrp()
        except OSError:
            pass  # it has gone already, or is outside our pid namespace
    return Received(info.si_signo, sender, name, from_kernel or same_group)


def give(pid: int, number: int, to_group: bool) -> bool:
    """Delivers to the script, or to its whole process group. False when it is gone."""
    try:
        os.killpg(pid, number) if to_group else os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def nobody_would_continue_us() -> bool:
    """Whether our group is orphaned (`ssh -t host holdfast run …`, a container's terminal): the kernel then ignores
    a stop, since no shell is there to end it.
    """
    try:
        return os.getsid(0) == os.getpid() or os.getsid(os.getppid()) != os.getsid(0)
    except OSError:
        return True


def ignores_stop(pid: int) -> bool:
    """Whether a process ignores SIGTSTP, as an interactive shell does."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")), "0")
    return bool(int(mask, 16) >> (signal.SIGTSTP - 1) & 1)
