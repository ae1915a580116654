"""A relay whose watcher was killed watches on by itself, in a thread: whatever goes wrong there, output flows on."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable

from holdfast.actions.job_cgroups import remove_groups
from holdfast.supervisor.after_exit import after_the_script
from holdfast.supervisor.guard.cgroup_placement import groups_of, let_go
from holdfast.supervisor.job_processes import release_held
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.tick import Watch

FINISH_S = 15.0  # for the last readings; then the relay ends without them


class RelayWatch:
    def __init__(self, spec: RunSpec, script_pid: int, say: Callable[[str], bool]) -> None:
        self._jobs: queue.SimpleQueue[Callable[[Watch], object] | None] = queue.SimpleQueue()
        self._finished = threading.Event()
        self._lost = 0
        self._give_up_at = float("inf")
        threading.excepthook = lambda failed: None  # not on the user's terminal: `_live` has recorded it
        self._thread = threading.Thread(target=self._live, args=(spec, script_pid, say), daemon=True, name="watch")
        try:
            self._thread.start()
        except RuntimeError:  # no more threads are allowed here: the script goes on unwatched
            self._finished.set()

    def do(self, job: Callable[[Watch], object]) -> None:
        self._jobs.put(job)

    def finish(self, status: int) -> None:
        self._give_up_at = time.monotonic() + FINISH_S
        self._jobs.put(lambda watch: after_the_script(watch, status, idle=time.sleep))
        self._jobs.put(lambda _: self._finished.set())

    def busy(self) -> bool:
        alive = self._thread.is_alive() and time.monotonic() < self._give_up_at
        return alive and not self._finished.is_set()

    def close(self, patience_s: float) -> int:
        """How many records could not be written."""
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join(patience_s)
        return self._lost

    def _live(self, spec: RunSpec, script_pid: int, say: Callable[[str], bool]) -> None:
        watch = Watch(spec, "relay", script_pid, say)
        try:
            self._watch_until_told(watch)
        finally:
            if (error := sys.exception()) is not None:  # it ends this thread; the script and its output go on
                watch.event("watcher.failed", reason="".join(traceback.format_exception(error))[-2000:])
            self._lost = watch.close()

    def _watch_until_told(self, watch: Watch) -> None:
        due = time.monotonic()
        while True:
            if time.monotonic() >= due:
                due = time.monotonic() + watch.tick(time.time())
            try:
                job = self._jobs.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                continue
            if job is None:
                break
            job(watch)
        remove_groups(groups_of(os.getpid()))
        watch.event("run.end")


def let_the_job_go_on(_: object) -> None:
    """The guard goes with its watcher. Should it have been killed too, the job may be held still."""
    let_go(groups_of(os.getpid()))
    release_held()
