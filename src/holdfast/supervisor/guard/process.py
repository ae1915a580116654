"""The guard's own process: looks, decides, acts; tells the watcher, which keeps the record. Writes no file."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import socket
import time
from dataclasses import replace
from typing import Any

from holdfast.actions import stop
from holdfast.actions.hold import Freezer, Hold, Signals
from holdfast.policy.ladder import Able, Done, Reading, Rung, Thresholds, decide, in_danger
from holdfast.supervisor.guard.course import Course
from holdfast.supervisor.guard.gauges import Budget, Gauge, Machine, Use, limited_groups
from holdfast.supervisor.guard.job import Job, one_of_several_ranks
from holdfast.supervisor.guard.place import LastLine
from holdfast.supervisor.guard.stalls import Stalls
from holdfast.supervisor.toughen import lock_memory

FASTEST_PER_S = 4 << 30  # bytes; one thread touched 1.5 to 3 GB/s here, earlyoom reckons with 6
QUICKEST_S, QUIET_S, SLOWEST_S = 0.005, 0.02, 1.0
HELD_SLICE_S, RUN_SLICE_S, RUN_LEAST_S = 0.09, 0.01, 0.002
TREE_EVERY_S, TREE_IN_DANGER_S = 1.0, 0.05
OURS_RATIO = 0.25  # of the growth is the job's
HELD_BY_JOB_RATIO = 0.5
LAST_LINE_RATIO = 0.5  # of the reserve, beyond our own line
WEIGH_RATIO = 0.7  # of the budget, by the sum of sizes, before the job is weighed properly
SETTLE_S = 0.3  # after a worker was stopped: its memory comes back within some hundredths
ORDER = list(Rung)


def be_the_guard(end: socket.socket, policy: str, budget_bytes: int | None) -> None:
    """Until the watcher is gone or says that it is over."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    lock_memory()
    gc.freeze()
    gc.disable()
    Guard(end, policy, budget_bytes).run()


class Guard:
    def __init__(self, end: socket.socket, policy: str, budget_bytes: int | None) -> None:
        end.setblocking(False)
        self._end = end
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)
        self._limits = Thresholds()
        self._able = Able(act=policy == "protect", hold=not one_of_several_ranks(), ask=False)
        self._budget = Budget(budget_bytes) if budget_bytes else None
        self._machine = Machine()
        self._stalls = Stalls(self._poll)
        self._job: Job | None = None
        self._own: Use | None = None
        self._last_line: LastLine | None = None
        self._hold: Hold | None = None
        self._gauges: list[Gauge] = []
        self._courses: dict[int, Course] = {}
        self._held_total = 0.0
        self._held_since: float | None = None
        self._released_at = 0.0  # the level at which the job was let go between two holds
        self._tree_at = 0.0
        self._quiet_since = 0.0
        self._done = Done()
        self._number = 0
        self._settled_at = 0.0
        self._not_yet_at = 0.0  # the last look at which there was no need to stop
        self._faults_at_start = 0
        self._pace_s = SLOWEST_S
        self._danger = False
        self._kills_before = 0  # in the job's group, by the attempts before
        self._folder: str | None = None

    def run(self) -> None:
        try:
            while self._hear():
                self._poll.poll(self._turn() * 1000)
        finally:
            self._release()

    # -- one turn

    def _turn(self) -> float:
        """Returns the seconds until the next one."""
        if self._job is None:
            return 3600.0
        now = time.monotonic()
        rung, reading, gauge = self._look(now)
        self._not_yet_at = self._not_yet_at if rung is Rung.STOP else now
        if rung is Rung.STOP:
            rung, reading, gauge = self._look(time.monotonic())  # irreversible: looked at again right before
            if rung is Rung.STOP and now >= self._settled_at:
                self._stop(now, reading, gauge)
                return QUICKEST_S
            rung = Rung.HOLD if rung is Rung.STOP and self._able.hold else rung
        if self._held_since is not None:
            return self._while_held(now, reading, gauge)
        if rung is Rung.HOLD and self._hold is not None:
            self._begin_hold(now, reading, gauge)
            return HELD_SLICE_S / 4
        if rung in (Rung.RELIEVE, Rung.CHECKPOINT):
            self._ask(rung, now, reading, gauge)
        elif rung is Rung.WARN:
            self._done = replace(self._done, warned=True)
            self._tell("guard.warn", reading, gauge)
        self._calm_down(now)
        return self._pace_s

    def _look(self, now: float) -> tuple[Rung, Reading, Gauge]:
        job = self._job
        assert job is not None
        job_time = now - self._held_total - (now - self._held_since if self._held_since is not None else 0.0)
        worst: tuple[Rung, Reading, Gauge] | None = None
        self._look_at_job(job, now, job_time)
        self._pace_s, self._danger = SLOWEST_S, False
        for gauge in self._gauges:
            if not gauge.read():
                continue
            gauge.swap_left = min(gauge.swap_left, self._machine.swap_left)
            course = self._courses.setdefault(id(gauge), Course())
            course.add(job_time, gauge.taken + gauge.swapped)
            reading = self._reading(gauge, course, now)
            rung = decide(reading, self._done, self._able, now, self._limits)
            found = (rung, reading, gauge)
            self._pace_s = min(self._pace_s, _pace(reading))
            self._danger = self._danger or in_danger(reading, self._limits)
            if worst is None or (ORDER.index(rung), -reading.seconds) > (ORDER.index(worst[0]), -worst[1].seconds):
                worst = found
        if self._last_line is not None and self._own is not None and self._able.act:
            room = min(_last_room(gauge) for gauge in self._gauges)
            self._last_line.follow(self._own.taken + max(room, 0.0), self._own.usage)
        assert worst is not None  # the machine itself is always there
        return worst

    def _look_at_job(self, job: Job, now: float, job_time: float) -> None:
        if self._own is not None and self._own.read():
            job.rss = self._own.taken
            self._done = replace(self._done, kernel_kills=self._own.kernel_kills() - self._kills_before)
            job.course.add(job_time, self._own.taken + self._own.swapped)
        due = TREE_EVERY_S if self._quiet_since or self._own is not None else TREE_IN_DANGER_S
        if now - self._tree_at >= due and self._held_since is None:
            self._tree_at = now
            job.look(now, job_time, count=self._own is None)
        if self._budget is not None:
            counted = self._own is not None
            near = job.rss > WEIGH_RATIO * self._budget.whole
            self._budget.taken = job.rss if counted else job.own_bytes(now, weigh=near)

    def _reading(self, gauge: Gauge, course: Course, now: float) -> Reading:
        job = self._job
        assert job is not None
        slow, fast = course.slow_per_s(), course.fast_per_s()
        grows = (fast > 0 and job.course.fast_per_s() > OURS_RATIO * fast) or (
            slow > 0 and job.course.slow_per_s() > OURS_RATIO * slow
        )
        stalled_s = self._stalls.look(gauge, now) if self._held_since is None else 0.0
        big = (
            job.rss > HELD_BY_JOB_RATIO * gauge.whole
        )  # what is large but steady pays for a stall, not for a neighbour
        ours = grows or gauge is self._budget or (big and stalled_s > 0)
        # Swap is room only for a job in a group of its own: elsewhere it is the neighbours who are swapped out.
        counts = self._own is not None or gauge is self._budget
        real_left = gauge.real_left if counts else gauge.whole - gauge.taken
        return Reading(gauge.what, gauge.left, real_left, gauge.whole, slow, fast, ours, stalled_s if ours else 0.0)

    def _calm_down(self, now: float) -> None:
        if self._danger:
            self._quiet_since = 0.0
        elif not self._quiet_since:
            self._quiet_since = now
        elif self._done != Done() and now - self._quiet_since > self._limits.idle_s:
            self._send({"kind": "guard.over", "held_s": round(self._done.held_s, 3)})
            self._done = Done()
            self._released_at = 0.0

    # -- what is done

    def _begin_hold(self, now: float, reading: Reading, gauge: Gauge) -> None:
        assert self._hold is not None
        if not self._hold.hold():
            self._hold = None
            self._able = replace(self._able, hold=False)
            return
        self._held_since = now
        taken = gauge.taken + gauge.swapped - self._released_at if self._released_at else 0.0
        self._done = replace(self._done, slice_bytes=max(0.0, taken))
        if not self._done.held_s:
            self._tell("guard.held", reading, gauge)
            if self._able.ask and not self._done.checkpoint_refused:
                self._ask(Rung.CHECKPOINT, now, reading, gauge)  # obeyed between two slices

    def _while_held(self, now: float, reading: Reading, gauge: Gauge) -> float:
        assert self._held_since is not None
        held_s = now - self._held_since
        if held_s < HELD_SLICE_S:
            return HELD_SLICE_S - held_s
        self._release()
        self._done = replace(self._done, slice_bytes=0.0)  # counted anew
        self._released_at = gauge.taken + gauge.swapped
        return min(RUN_SLICE_S, max(RUN_LEAST_S, reading.seconds / 4))

    def _release(self) -> None:
        if self._held_since is not None and self._hold is not None:
            self._hold.release()
            held_s = time.monotonic() - self._held_since
            self._held_total += held_s
            self._done = replace(self._done, held_s=self._done.held_s + held_s)
            self._held_since = None

    def _ask(self, rung: Rung, now: float, reading: Reading, gauge: Gauge) -> None:
        if rung is Rung.RELIEVE:
            self._done = replace(self._done, relief_asked_at=now, relief_answered=False)
        else:
            self._done = replace(self._done, checkpoint_asked_at=now, checkpoints=self._done.checkpoints + 1)
        self._number += 1
        self._tell("guard.ask", reading, gauge, do=rung.value, id=f"guard:{rung.value}:{self._number}")

    def _stop(self, now: float, reading: Reading, gauge: Gauge) -> None:
        job = self._job
        assert job is not None
        worker = job.leaking_worker()
        if worker is not None and stop.stop_one(worker.pid, lambda _: job.still_there(worker)):
            name = job.name(worker.pid)
            self._tell("guard.stopped", reading, gauge, reason=gauge.cause, rung="worker", victim=name, whole_job=False)
            self._courses.clear()
            job.forget()
            self._settled_at = now + SETTLE_S
            return
        # Told before it is done: whoever sees the job end knows why by then.
        victim = job.name(job.largest())
        self._tell("guard.stopped", reading, gauge, reason=gauge.cause, rung="job", victim=victim, whole_job=True)
        began = time.monotonic()
        count = stop.stop_all(job.pids, release=self._release)
        ended = {
            "kind": "guard.ended",
            "processes": count,
            "reacted_ms": round((began - self._not_yet_at) * 1000, 1),  # at most so long after the reason came up
            "took_ms": round((time.monotonic() - began) * 1000, 1),
            "major_faults": _major_faults() - self._faults_at_start,
        }
        self._send(ended)
        self._job = None  # until the next attempt

    # -- the watcher

    def _tell(self, kind: str, reading: Reading, gauge: Gauge, **more: Any) -> None:
        packet = {
            "kind": kind,
            "at": time.time(),
            "what": gauge.what,
            "cause": gauge.cause,
            "left_bytes": int(reading.left_bytes),
            "taken_bytes": int(gauge.taken),
            "whole_bytes": int(reading.whole_bytes),
            "per_s": int(reading.slow_per_s or max(reading.fast_per_s, 0.0)),
            "seconds": round(min(reading.seconds, 1e6), 3),
            "stalled_s": round(reading.stalled_s, 3),
            "held_s": round(self._done.held_s, 3),
            "checkpoint_saved_s_ago": _ago(self._done.checkpoint_saved_at),
        }
        self._send({**packet, **more})

    def _send(self, packet: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a watcher that does not read misses a line of the record
            self._end.send(json.dumps(packet).encode())

    def _hear(self) -> bool:
        """False once it is over."""
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
                self._release()  # what is left of the attempt, and the next one in the same group
                self._job = None
            elif packet["do"] == "trainers" and self._job is not None:
                self._job.trainers = set(packet["pids"])
                several = len(packet["pids"]) > 1
                self._able = replace(self._able, ask=bool(packet["pids"]), hold=self._able.hold and not several)
            elif packet["do"] == "answer":
                self._answered(packet)

    def _begin(self, packet: dict[str, Any]) -> None:
        self._job = Job(packet["script"], packet["watcher"])
        folder = packet.get("folder")
        if folder is None or folder != self._folder:  # the attempts of a run share a group: its files stay open
            self._folder = folder
            self._own = Use(folder, packet["version"]) if folder else None
            self._last_line = LastLine(folder, packet["version"]) if folder else None
            groups = limited_groups(packet["script"], but_not=folder)
            self._gauges = [self._machine, *groups, *([self._budget] if self._budget is not None else [])]
        if not isinstance(self._hold, Freezer):
            self._hold = _holder(packet, self._job)
        self._kills_before = self._own.kernel_kills() if self._own is not None else 0
        self._able = replace(self._able, ask=False)
        self._courses = {}
        self._done = Done()
        self._released_at = 0.0
        self._quiet_since = 0.0
        for _ in range(3):  # what the first looks need is touched now, not in the hour of need
            self._look(time.monotonic())
        self._faults_at_start = _major_faults()

    def _answered(self, packet: dict[str, Any]) -> None:
        now = time.monotonic()
        if packet["command"] == "relieve":
            self._done = replace(self._done, relief_answered=True)
            return
        saved = packet["result"] == "saved"
        self._done = replace(
            self._done,
            checkpoint_answered_at=now,
            checkpoint_saved_at=now if saved else self._done.checkpoint_saved_at,
            checkpoint_refused=not saved,
        )


def _pace(reading: Reading) -> float:
    least = QUICKEST_S if reading.seconds < 1.0 else QUIET_S
    return min(SLOWEST_S, max(least, min(reading.left_bytes / FASTEST_PER_S / 3, reading.seconds / 8)))


def _last_room(gauge: Gauge) -> float:
    """Until the kernel's line in the job's own group."""
    return gauge.real_left if isinstance(gauge, Budget) else gauge.left + LAST_LINE_RATIO * gauge.reserve


def _holder(packet: dict[str, Any], job: Job) -> Hold:
    freezer = packet.get("freezer")
    if freezer:
        with contextlib.suppress(OSError):
            return Freezer(freezer, packet["version"])
    return Signals(job.states)


def _major_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _ago(at: float) -> float | None:
    return round(time.monotonic() - at, 3) if at != float("-inf") else None
