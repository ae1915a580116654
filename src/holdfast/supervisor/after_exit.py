"""What is done once the script has ended, by whichever of the two processes is its parent then."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from holdfast.supervisor.job_processes import stop_left_behind
from holdfast.supervisor.tick import Watch
from holdfast.vocabulary import Exit, Policy

KERNEL_LOG_LAG_S = 0.2


def after_the_script(watch: Watch, status: int, idle: Callable[[float], None]) -> None:
    """Records how it ended, looks for the reason while it is fresh, and leaves no process behind."""
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
        return  # it takes over nothing: what the script started on purpose goes on
    stopped = stop_left_behind(idle)
    if stopped:
        watch.event("processes.left", stopped=stopped)
        watch.say(f"holdfast: stopped what the script had left running: {', '.join(stopped)}")
