"""The guard's process. It writes no file: it reports to the watcher, which keeps the record."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import socket
from typing import Any

from holdfast.actions.hold import Freezer, Hold, Signals
from holdfast.policy.memory_ladder import Able
from holdfast.supervisor.guard.cgroup_placement import LastLine
from holdfast.supervisor.guard.controller import Controller, Ground
from holdfast.supervisor.guard.gauges import Budget, Gauge, Machine, Use, limited_groups
from holdfast.supervisor.guard.job import Job, one_of_several_ranks
from holdfast.supervisor.guard.memory_stalls import Stalls
from holdfast.supervisor.hardening import lock_memory
from holdfast.vocabulary import Policy


def be_the_guard(end: socket.socket, policy: Policy, budget_bytes: int | None) -> None:
    """Returns when the watcher is gone or has closed its end."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    lock_memory()
    gc.freeze()
    gc.disable()
    Guard(end, policy, budget_bytes).run()


class Guard:
    def __init__(self, end: socket.socket, policy: Policy, budget_bytes: int | None) -> None:
        end.setblocking(False)
        self._end = end
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)
        self._machine = Machine()
        self._budget = Budget(budget_bytes) if budget_bytes else None
        able = Able(act=policy == Policy.PROTECT, hold=not one_of_several_ranks(), ask=False)
        self._controller = Controller(self._send, able, Stalls(self._poll))
        self._folder: str | None = None
        self._own: Use | None = None
        self._last_line: LastLine | None = None
        self._gauges: list[Gauge] = []
        self._freezer: Freezer | None = None

    def run(self) -> None:
        try:
            while self._hear():
                self._poll.poll(self._controller.turn() * 1000)
        finally:
            self._controller.release()

    def _hear(self) -> bool:
        """Handles what the watcher sent; False when it is gone."""
        while True:
            try:
                data = self._end.recv(1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            packet = json.loads(data)
            if packet["do"] == "begin":
                self._begin(packet)
            elif packet["do"] == "rest":
                self._controller.rest()
            elif packet["do"] == "trainers":
                self._controller.trainers(packet["pids"])
            elif packet["do"] == "answer":
                self._controller.answered(packet["command"], packet["result"])

    def _begin(self, packet: dict[str, Any]) -> None:
        job = Job(packet["script"], packet["watcher"])
        folder = packet.get("folder")
        if folder is None or folder != self._folder:  # the attempts of a run share a group, whose files stay open
            self._folder = folder
            self._own = Use(folder, packet["version"]) if folder else None
            self._last_line = LastLine(folder, packet["version"]) if folder else None
            groups = limited_groups(packet["script"], but_not=folder)
            self._gauges = [self._machine, *groups, *([self._budget] if self._budget is not None else [])]
        self._controller.begin(Ground(job, self._gauges, self._own, self._last_line, self._holder(packet, job)))

    def _holder(self, packet: dict[str, Any], job: Job) -> Hold:
        if self._freezer is None and packet.get("freezer"):
            with contextlib.suppress(OSError):
                self._freezer = Freezer(packet["freezer"], packet["version"])
        return self._freezer or Signals(job.states)

    def _send(self, packet: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a watcher that does not read loses this line of the record
            self._end.send(json.dumps(packet).encode())
