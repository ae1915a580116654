"""Between the guard and the watcher: forks the guard (in the relay), records what it does, passes its requests to the training
process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import time
import traceback
from typing import Any

from holdfast.actions.job_cgroups import Groups
from holdfast.supervisor.hardening import take_name
from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Event, Policy

TRAINERS_S = 0.5


def guard_ends(policy: Policy) -> tuple[socket.socket, socket.socket] | None:
    """The watcher's and the guard's socket. `observe` changes nothing, so it has no guard."""
    if policy == Policy.OBSERVE:
        return None
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def fork_guard(end: socket.socket, spec: RunSpec) -> None:
    """Called by the relay while the watcher starts the script. The guard is not part of the job, and nothing waits for it."""
    with contextlib.suppress(OSError):  # the watcher notices that there is no guard
        if os.fork():
            return
        try:
            take_name("hf-guard")  # first of all, so that it is not mistaken for the script
            os.setpgid(0, 0)  # no signals from the terminal
            _live(end, spec)
        finally:
            if (error := sys.exception()) is not None:
                reason = "".join(traceback.format_exception(error))[-2000:]
                with contextlib.suppress(OSError):
                    end.send(json.dumps({"kind": "guard.failed", "reason": reason}).encode())
            os._exit(0)


def _live(end: socket.socket, spec: RunSpec) -> None:
    fd = end.fileno()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    # Others notice the end of the script or relay by these descriptors being closed, so none may stay open here.
    os.closerange(3, fd)
    os.closerange(fd + 1, 4096)
    select.select([end], [], [])  # until the script has started or failed to: it gets the processors to itself
    from holdfast.supervisor.guard.process import be_the_guard  # noqa: PLC0415 - here: the script does not wait for it

    be_the_guard(end, spec.policy, spec.memory_bytes)


class GuardLink:
    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._trainers: list[int] = []
        self._trainers_at = 0.0
        self.lost = False

    def fileno(self) -> int:
        return self._end.fileno()

    def begin(self, script_pid: int, groups: Groups) -> None:
        """An attempt has started."""
        self._trainers = []
        where = {"folder": groups.folders.get("memory"), "freezer": groups.folders.get("freezer")}
        self._send(do="begin", script=script_pid, watcher=os.getpid(), version=groups.version, **where)

    def rest(self) -> None:
        """The attempt is over; the watcher ends the processes that are left."""
        self._send(do="rest")

    def close(self) -> None:
        self._end.close()

    def trainers(self, pids: list[int]) -> None:
        if pids != self._trainers:
            self._trainers = pids
            self._send(do="trainers", pids=pids)

    def answer(self, event: Event) -> None:
        """A training process has carried out a request."""
        if str(event.data.get("id", "")).startswith("guard:"):
            self._send(do="answer", command=event.data.get("do"), result=event.data.get("result"))

    def receive(self) -> list[Event] | None:
        """What the guard did or requests; None when it is gone."""
        events: list[Event] = []
        while True:
            try:
                data = self._end.recv(1 << 16)
            except BlockingIOError:
                return events
            except OSError:
                data = b""
            if not data:
                self.lost = True
                return events or None
            packet = json.loads(data)
            events.append(Event(packet.pop("kind"), float(packet.pop("at", 0.0)) or time.time(), packet))

    def _send(self, **packet: Any) -> None:
        with contextlib.suppress(OSError):  # the guard is gone, which `receive` notices
            self._end.send(json.dumps(packet).encode())
