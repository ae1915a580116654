"""What is asked over the control socket of a run, carried out by the watcher: stacks, checkpoint, pause, resume, stop.

Each request is recorded, and so is what came of it. All but stacks are a signal or a line to somebody and are done in the loop;
stacks are taken in a thread, since a process that hangs may take its time to answer.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.actions.hold import Signals
from holdfast.probes.tree import stat_of
from holdfast.supervisor import tree_stacks
from holdfast.supervisor.control_server import ControlServer, Request
from holdfast.supervisor.guard.job import one_of_several_ranks
from holdfast.supervisor.tick import Watch
from holdfast.vocabulary import Event

ID = "control:"
SAVED = "saved"

Forward = Callable[[dict[str, Any]], None]


class Control:
    def __init__(self, directory: Path | None, watch: Watch, forward: Forward) -> None:
        """`forward`: a signal to the script, in the form the relay sends them."""
        self._watch = watch
        self._forward = forward
        self._server = self._served(directory)
        self._saving: dict[str, Request] = {}
        self._taken: queue.SimpleQueue[tuple[Request, dict[str, Any]]] = queue.SimpleQueue()
        self._hold = Signals(_job_states)
        self.paused = False
        self._number = 0

    def _served(self, directory: Path | None) -> ControlServer | None:
        if directory is None:
            return None
        try:
            server = ControlServer(directory)
        except OSError as error:
            self._watch.event("control.unavailable", reason=f"no socket can be made in {directory}: {error.strerror}")
            return None
        self._watch.event("control.ready", in_memory=server.in_memory)
        return server

    @property
    def server(self) -> ControlServer | None:
        return self._server

    def hear(self, script_runs: bool) -> None:
        """Called by the loop when the server is readable."""
        if self._server is None:
            return
        for request in self._server.take():
            self._watch.event("control.request", do=request.do, pid=request.peer_pid, name=request.peer_name)
            if script_runs or request.do == "stop":
                self._carry_out(request)
            else:
                self._refuse(request, "no script runs right now")
        while not self._taken.empty():
            request, data = self._taken.get()
            threads = sum(len(process["threads"]) for process in data["processes"])
            self._record(request, f"{threads} threads of {len(data['processes'])} processes in {data['took_s']:.3f} s")

    def _carry_out(self, request: Request) -> None:
        if request.do == "stacks":
            threading.Thread(target=self._take_stacks, args=(request,), daemon=True, name="stacks").start()
        elif request.do == "checkpoint":
            self._save(request)
        elif request.do == "pause":
            self._pause(request)
        elif request.do == "resume":
            self._answer(request, "resumed" if self.resume() else "it was not paused")
        else:
            self.resume()
            sender = {"sender_pid": request.peer_pid, "sender_name": request.peer_name}
            self._forward({"number": int(signal.SIGTERM), "to_group": False, "at": time.monotonic(), **sender})
            self._answer(request, "asked to end with SIGTERM")

    def _take_stacks(self, request: Request) -> None:
        data = tree_stacks.take(tree_stacks.below(os.getpid())).as_data()
        request.answer(snapshot=data)
        self._taken.put((request, data))
        if self._server is not None:
            self._server.wake()

    # -- a checkpoint

    def _save(self, request: Request) -> None:
        if self.paused:
            self._refuse(request, "the job is paused: resume it first")
            return
        if self._watch.guard_questions.waiting:
            self._refuse(request, "the training process is being asked something else: try again")
            return
        self._number += 1
        id = f"{ID}{self._number}"
        if not self._watch.ask(do="checkpoint", id=id):
            self._refuse(request, "nothing trains here that Holdfast is inside of")
            return
        self._saving[id] = request

    def heard(self, event: Event) -> None:
        """A training process has carried out a command."""
        request = self._saving.pop(str(event.data.get("id", "")), None)
        if request is None:
            return
        result = str(event.data.get("result"))
        if result == SAVED:
            self._answer(request, result)
        else:
            why = "checkpoints are not kept in this run" if result == "unknown" else result
            self._refuse(request, f"no checkpoint was saved: {why}")

    # -- a pause

    def _pause(self, request: Request) -> None:
        if one_of_several_ranks():
            self._refuse(request, "this is one of several ranks, and the others would wait for it")
        elif self.paused:
            self._answer(request, "it is paused already")
        elif self._hold.hold():
            self.paused = True
            self._watch.event("job.paused", pid=request.peer_pid)
            self._answer(request, "paused")
        else:
            self._refuse(request, "no process of the job could be stopped")

    def resume(self) -> bool:
        """Also before a signal is passed on: a stopped process would not hear it."""
        if not self.paused:
            return False
        self._hold.release()
        self.paused = False
        self._watch.event("job.resumed")
        return True

    def hold_again(self) -> None:
        """Somebody let all stopped processes of the job go on, also those of a pause."""
        if self.paused:
            self._hold = Signals(_job_states)
            self._hold.hold()

    # -- the end of an attempt, and of all

    def attempt_over(self) -> None:
        self._hold.release()
        self.paused = False
        for request in self._saving.values():
            self._refuse(request, "the script has ended")
        self._saving.clear()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def _answer(self, request: Request, result: str) -> None:
        request.answer(result=result)
        self._record(request, result)

    def _refuse(self, request: Request, reason: str) -> None:
        request.refuse(reason)
        self._record(request, f"refused: {reason}")

    def _record(self, request: Request, result: str) -> None:
        self._watch.event("control.done", do=request.do, pid=request.peer_pid, result=result)


def _job_states() -> list[tuple[int, str]]:
    found = (stat_of("/proc", pid) for pid in tree_stacks.below(os.getpid()))
    return [(stat.pid, stat.state) for stat in found if stat is not None]
