"""Puts relay, watcher and script in their places."""

from __future__ import annotations

import os
import sys
import traceback

from holdfast.supervisor import signals
from holdfast.supervisor.control import link_pair
from holdfast.supervisor.relay import Relay
from holdfast.supervisor.streams import open_streams
from holdfast.supervisor.task import Task
from holdfast.supervisor.toughen import become_subreaper, lock_memory, lower_oom_score
from holdfast.supervisor.watcher import watch_run


def supervise(task: Task) -> int:
    """Runs the command to its end; returns its exit code (128+N for a signal).

    relay (this process) -> watcher -> script: whichever of the two is killed, the other is or becomes the script's
    parent, so that the way it ended is never lost.
    """
    streams = open_streams()
    signal_mask = signals.block()
    become_subreaper()
    oom_score = lower_oom_score()
    here, there = link_pair()
    watcher_pid = os.fork()
    if watcher_pid == 0:
        here.close()
        try:
            watch_run(task, streams, there, signal_mask, oom_score)
        finally:
            if (error := sys.exception()) is not None:
                there.tell("watcher.failed", reason="".join(traceback.format_exception(error))[-2000:])
            os._exit(0)
    there.close()
    streams.close_script_side()
    lock_memory()
    return Relay(task, streams, here, watcher_pid).run()
