"""The watcher's end of the guard: starts it, keeps the record of what it does, passes its wishes to the training process."""

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
    """The watcher's and the guard's. `observe` takes over nothing, so there is none."""
    if policy == Policy.OBSERVE:
        return None
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def fork_guard(end: socket.socket, spec: RunSpec) -> None:
    """By the relay, while the watcher starts the script: no part of the job, and nobody waits for it."""
    with contextlib.suppress(OSError):  # else the watcher sees that there is none
        if os.fork():
            return
        try:
            take_name("hf-guard")  # before anything else: nobody may take it for the script
            os.setpgid(0, 0)  # what is typed at the terminal is not for it
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
    # The script's output and the relay's link are not ours to keep open: their end is how others notice an end.
    os.closerange(3, fd)
    os.closerange(fd + 1, 4096)
    select.select([end], [], [])  # until the script has started, or never will: it has the processors to itself
    from holdfast.supervisor.guard.process import be_the_guard  # noqa: PLC0415 - here: the script does not wait for it

    be_the_guard(end, spec.policy, spec.memory_bytes)


class Guarding:
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
        """Nothing of the job runs: the processes that are left are the watcher's to end."""
        self._send(do="rest")

    def close(self) -> None:
        self._end.close()

    def trainers(self, pids: list[int]) -> None:
        if pids != self._trainers:
            self._trainers = pids
            self._send(do="trainers", pids=pids)

    def answer(self, event: Event) -> None:
        """A training process has done what it was asked for."""
        if str(event.data.get("id", "")).startswith("guard:"):
            self._send(do="answer", command=event.data.get("do"), result=event.data.get("result"))

    def receive(self) -> list[Event] | None:
        """What the guard did or wants; None once it is gone."""
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
        with contextlib.suppress(OSError):  # it is gone: the watcher sees that by itself
            self._end.send(json.dumps(packet).encode())
