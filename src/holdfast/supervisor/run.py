"""Puts relay, watcher and script in their places."""

from __future__ import annotations

import errno
import os
import socket
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from holdfast.actions.job_cgroups import remove_groups
from holdfast.supervisor import signals
from holdfast.supervisor.guard.cgroup_placement import contain_job
from holdfast.supervisor.guard.guard_link import GuardLink, fork_guard, guard_ends
from holdfast.supervisor.hardening import become_subreaper, lock_memory, lower_oom_score, slim, take_name
from holdfast.supervisor.launch import CannotStart, Launcher
from holdfast.supervisor.relay import NeverStarted, Relay
from holdfast.supervisor.relay_link import Link, link_pair
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.streams import Streams, open_streams

Afterwards = Callable[[int, Callable[[str], bool]], None]  # with the exit code, and how a line is said
ATTEMPTS = 3  # to start a watcher, where one is killed before it has started the command


def supervise(spec: RunSpec, afterwards: Afterwards = lambda code, say: None) -> int:
    """Runs the command to its end; returns its exit code (128+N for a signal). `afterwards` is called once all is over.

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
        ends = guard_ends(spec.policy)
        try:
            watcher_pid = os.fork()
        except OSError as error:
            raise NeverStarted(error.errno or errno.EAGAIN) from None
        if watcher_pid == 0:
            here.close()
            _be_the_watcher(spec, streams, there, signal_mask, oom_score, guard=_kept(ends))
        there.close()
        if ends is not None:
            fork_guard(ends[1], spec)
            for end in ends:
                end.close()
        relay = Relay(spec, streams, here, watcher_pid)
        if attempt == 0:
            signals.start_thread(on_signal)
        try:
            code = relay.run()
        except NeverStarted as error:
            if error.errno or attempt == ATTEMPTS - 1:
                raise
        else:
            afterwards(code, partial(relay.say, now=True))
            return code
    raise AssertionError("unreachable")


def _kept(ends: tuple[socket.socket, socket.socket] | None) -> GuardLink | None:
    """Keeps the watcher's end and closes the guard's."""
    if ends is None:
        return None
    ends[1].close()
    return GuardLink(ends[0])


def _be_the_watcher(
    spec: RunSpec,
    streams: Streams,
    link: Link,
    signal_mask: set[int],
    oom_score: str | None,
    *,
    guard: GuardLink | None,
) -> NoReturn:
    try:
        _start_and_watch(spec, streams, link, signal_mask, oom_score, guard=guard)
    finally:
        if (error := sys.exception()) is not None:
            link.tell("watcher.failed", reason="".join(traceback.format_exception(error))[-2000:])
        os._exit(0)


def _start_and_watch(
    spec: RunSpec,
    streams: Streams,
    link: Link,
    signal_mask: set[int],
    oom_score: str | None,
    *,
    guard: GuardLink | None,
) -> None:
    os.setsid()
    relay_pid = os.getppid()
    groups = contain_job(spec.policy, relay_pid)
    become_subreaper()
    launcher = Launcher(spec, streams, signal_mask, oom_score, groups)
    try:
        script_pid = launcher.start(1, bool(spec.resumed_from), spec.micro_batches)
    except CannotStart as error:
        remove_groups(groups)
        link.tell("cannot-start", errno=error.errno)
        return
    if not spec.may_restart:  # else a next attempt writes where this one does
        streams.close_script_side()
    link.tell("started", pid=script_pid)
    launcher.contain_first(script_pid, relay_pid)
    groups = launcher.groups
    if guard is not None:
        guard.begin(script_pid, groups)
    _let_go_of_the_terminal()
    take_name("hf-watcher")
    from holdfast.supervisor.watcher import Watcher  # noqa: PLC0415 - after the launch: the script does not wait for it

    Watcher(spec, streams, link, launcher, script_pid, groups=groups, guard=guard).run()
    remove_groups(groups)


def _let_go_of_the_terminal() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)
