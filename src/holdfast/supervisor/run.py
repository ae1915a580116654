"""Puts relay, watcher and script in their places."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import NoReturn

from holdfast.supervisor import signals
from holdfast.supervisor.control import Link, link_pair
from holdfast.supervisor.relay import NeverStarted, Relay
from holdfast.supervisor.streams import Streams, open_streams
from holdfast.supervisor.task import Task
from holdfast.supervisor.toughen import become_subreaper, lock_memory, lower_oom_score, slim
from holdfast.supervisor.watcher import watch_run

ATTEMPTS = 3  # at a watcher, should one be killed before it has started the command


def supervise(task: Task) -> int:
    """Runs the command to its end; returns its exit code (128+N for a signal).

    relay (this process) -> watcher -> script: whichever of the two is killed, the other is or becomes the script's
    parent, so that the way it ended is never lost.
    """
    streams = open_streams()
    signal_mask = signals.block()
    become_subreaper()
    oom_score = lower_oom_score()
    slim()
    lock_memory()
    relay: Relay | None = None

    def on_signal(received: signals.Received) -> None:
        if relay is not None:
            relay.on_signal(received)

    for attempt in range(ATTEMPTS):
        here, there = link_pair()
        try:
            watcher_pid = os.fork()
        except OSError as error:
            raise NeverStarted(error.errno or errno.EAGAIN) from None
        if watcher_pid == 0:
            here.close()
            _be_the_watcher(task, streams, there, signal_mask, oom_score)
        there.close()
        relay = Relay(task, streams, here, watcher_pid)
        if attempt == 0:
            signals.start_thread(on_signal)
        try:
            return relay.run()
        except NeverStarted as error:
            if error.errno or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _be_the_watcher(task: Task, streams: Streams, link: Link, signal_mask: set[int], oom_score: str | None) -> NoReturn:
    try:
        watch_run(task, streams, link, signal_mask, oom_score)
    finally:
        if (error := sys.exception()) is not None:
            link.tell("watcher.failed", reason="".join(traceback.format_exception(error))[-2000:])
        os._exit(0)
