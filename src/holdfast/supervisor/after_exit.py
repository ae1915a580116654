"""What is done once the script has ended, by the watcher or, where that was killed, by the relay."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from holdfast.recorded_events import Exit
from holdfast.supervisor.job_processes import stop_left_behind
from holdfast.supervisor.tick import Watch
from holdfast.vocabulary import Policy

KERNEL_LOG_LAG_S = 0.2  # after a SIGKILL: the kernel may log the reason after the process is gone


def after_the_script(watch: Watch, status: int, idle: Callable[[float], None]) -> None:
    """Records the exit, takes the last readings while they exist, and stops processes that were left behind."""
    watch.record(Exit.by(status).event(time.time()))
    look_for_the_reason(watch, status, idle)
    leave_nothing_behind(watch, idle)


def look_for_the_reason(watch: Watch, status: int, idle: Callable[[float], None]) -> None:
    watch.closing_look(time.time())
    if os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, 128 + signal.SIGKILL):
        idle(KERNEL_LOG_LAG_S)
        watch.closing_look(time.time())


def leave_nothing_behind(watch: Watch, idle: Callable[[float], None]) -> None:
    if watch.policy == Policy.OBSERVE:
        return  # changes nothing: processes the script left in the background go on
    stopped, remaining = stop_left_behind(idle)
    if stopped or remaining:
        watch.event("processes.left", stopped=stopped, remaining=remaining)
    if stopped:
        watch.say(f"holdfast: stopped what the script had left running: {', '.join(stopped)}")
    if remaining:
        watch.say(f"holdfast: left behind, since it does not end even when killed: {', '.join(remaining)}")
