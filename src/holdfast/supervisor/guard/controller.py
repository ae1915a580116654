"""One turn of the guard: look, decide, act. What it works with is passed in, the clock included."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from holdfast.actions import stop
from holdfast.actions.hold import Hold
from holdfast.policy.memory_ladder import Able, Done, Reading, Rung, Thresholds, decide, in_danger
from holdfast.supervisor.guard.cgroup_placement import LastLine
from holdfast.supervisor.guard.gauges import Budget, Gauge, Use
from holdfast.supervisor.guard.growth_rate import GrowthRate
from holdfast.supervisor.guard.job import Job
from holdfast.supervisor.guard.memory_stalls import Stalls
from holdfast.supervisor.guard.new_highs import NewHighs

FASTEST_PER_S = 4 << 30  # bytes; one thread was measured to touch 1.5 to 3 GB/s, earlyoom assumes 6
QUICKEST_S, QUIET_S, SLOWEST_S = 0.005, 0.02, 1.0  # between two turns: in danger, near the limit, at rest
QUIET_ALONE_S = 0.05  # for a job with a limited group of its own: 1 % of a core while it stays near the limit
HELD_SLICE_S, RUN_SLICE_S, RUN_LEAST_S = 0.09, 0.01, 0.002  # a held job runs for about a tenth of the time
TREE_EVERY_S, TREE_IN_DANGER_S = 1.0, 0.2  # between two looks at the job's processes
OURS_RATIO = 0.5  # of the growth: with at least this share the job is what grows
FRESH_S, LASTING_S = 0.3, 1.0  # over which that is judged
HELD_BY_JOB_RATIO = 0.5  # of the whole: a job that holds this much is the cause of a stall
NEAR_RATIO, NEAR_BYTES = 0.02, 32 << 20  # left before the limit: from here on lasting growth is looked for
WEIGH_RATIO = 0.7  # of the budget, by the sum of resident sizes: from here on what the job holds is measured exactly
SETTLE_S = 0.3  # after a worker was stopped; its memory is free within some hundredths of a second
ORDER = list(Rung)


@dataclass(slots=True)
class Ground:
    """What is watched in one attempt, and the means to act on it."""

    job: Job
    gauges: list[Gauge]
    own: Use | None = None  # the job's own group
    last_line: LastLine | None = None
    hold: Hold | None = None


class Controller:
    def __init__(
        self,
        tell: Callable[[dict[str, Any]], None],
        able: Able,
        stalls: Stalls,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = tell
        self._able = able
        self._stalls = stalls
        self._clock = clock
        self._limits = Thresholds()
        self._ground: Ground | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._done = Done()
        self._courses: dict[int, tuple[GrowthRate, NewHighs]] = {}
        self._held_total = 0.0
        self._held_since: float | None = None
        self._tree_at = 0.0
        self._quiet_since = 0.0
        self._settled_at = 0.0
        self._calm_at = self._not_yet_at = self._clock()  # the last turns that needed no hold, and no stop
        self._faults_at_start = 0
        self._pace_s = SLOWEST_S
        self._danger = False
        self._kills_before = 0  # in the job's group, before this episode
        self._number = 0
        self._helper = (0.0, False)  # when a growing helper was looked for, and whether one was found

    def begin(self, ground: Ground) -> None:
        self._ground = ground
        self._begin_anew()
        self._kills_before = ground.own.kernel_kills() if ground.own is not None else 0
        self._able = replace(self._able, ask=False)
        for _ in range(3):  # the pages that a look needs are loaded now, while memory is left
            self._look(ground, self._clock())
        self._faults_at_start = _major_faults()

    def rest(self) -> None:
        """The attempt is over: nothing of it stays paused."""
        self.release()
        self._ground = None

    def turn(self) -> float:
        """Returns the seconds until the next turn."""
        ground = self._ground
        if ground is None:
            return 3600.0
        now = self._clock()
        rung, reading, gauge = self._look(ground, now)
        if rung is Rung.STOP:
            rung, reading, gauge = self._look(
                ground, self._clock()
            )  # irreversible, so it is checked again right before
            if rung is Rung.STOP and now >= self._settled_at:
                self._stop(ground, now, reading, gauge)
                return QUICKEST_S
            rung = Rung.HOLD if rung is Rung.STOP and self._able.hold else rung
        else:
            self._not_yet_at = now
        if self._held_since is not None:
            return self._while_held(now, reading)
        if rung is Rung.HOLD and ground.hold is not None:
            self._begin_hold(ground.hold, now, reading, gauge)
            return HELD_SLICE_S / 4
        self._calm_at = now
        if rung in (Rung.RELIEVE, Rung.CHECKPOINT):
            self._ask(rung, now, reading, gauge)
        elif rung is Rung.WARN:
            self._done = replace(self._done, warned=True)
            self._tell("guard.warn", reading, gauge)
        self._calm_down(ground, now)
        return self._pace_s

    # -- looking

    def _look(self, ground: Ground, now: float) -> tuple[Rung, Reading, Gauge]:
        job_time = now - self._held_total - (now - self._held_since if self._held_since is not None else 0.0)
        worst: tuple[Rung, Reading, Gauge] | None = None
        self._look_at_job(ground, now, job_time)
        self._pace_s, self._danger = SLOWEST_S, False
        swap_left = float("inf")
        for gauge in ground.gauges:
            if not gauge.read():
                continue
            swap_left = gauge.swap_left = min(
                gauge.swap_left, swap_left
            )  # the machine is the first gauge, and its swap is shared by all
            reading = self._reading(ground, gauge, now, job_time)
            rung = decide(reading, self._done, self._able, now, self._limits)
            self._pace_s = min(self._pace_s, _pace(reading))
            self._danger = self._danger or in_danger(reading, self._limits)
            if worst is None or (ORDER.index(rung), -reading.seconds) > (ORDER.index(worst[0]), -worst[1].seconds):
                worst = (rung, reading, gauge)
        if ground.last_line is not None and ground.own is not None and self._able.act:
            before = ground.own.taken
            if ground.own.read():
                ground.last_line.follow(before, ground.own, ground.gauges)
        assert worst is not None  # the machine itself is always there
        return worst

    def _look_at_job(self, ground: Ground, now: float, job_time: float) -> None:
        job, own = ground.job, ground.own
        held = self._held_since is not None
        if own is not None and own.read():
            job.rss = own.taken
            self._done = replace(self._done, kernel_kills=own.kernel_kills() - self._kills_before)
            job.climb.add(job_time, own.taken + own.swapped, held)
        quick_s = TREE_IN_DANGER_S if own is not None else QUICKEST_S
        if not held and now - self._tree_at >= (TREE_EVERY_S if self._quiet_since else job.due_s(quick_s)):
            self._tree_at = now
            job.look(now, job_time, count=own is None)
        for gauge in ground.gauges:
            if isinstance(gauge, Budget):
                near = job.rss > WEIGH_RATIO * gauge.whole
                gauge.taken = job.rss if own is not None else job.own_bytes(now, weigh=near)

    def _reading(self, ground: Ground, gauge: Gauge, now: float, job_time: float) -> Reading:
        job, held = ground.job, self._held_since is not None
        if id(gauge) not in self._courses:
            self._courses[id(gauge)] = GrowthRate(), NewHighs()
        course, climb = self._courses[id(gauge)]
        level = gauge.taken + gauge.swapped
        course.add(job_time, level)
        climb.add(job_time, level, held)
        alone = ground.last_line is not None
        # Swap counts only for a job in a group of its own: otherwise other programs are swapped out for it.
        end_left = gauge.left_alone + gauge.swap_left if alone else gauge.left_to_the_end
        near = end_left < max(NEAR_RATIO * gauge.whole, NEAR_BYTES)
        fresh, lasting = climb.fresh, near and climb.lasting
        lasting = lasting and (
            not alone or job.climb.lasting
        )  # waiting for certainty costs nothing: the group's limit protects the machine
        grows = isinstance(gauge, Budget) or (
            (fresh and _is_the_jobs(climb, job.climb, FRESH_S))
            or (lasting and _is_the_jobs(climb, job.climb, LASTING_S))
        )
        stalled_s = self._stalls.look(gauge, now) if not held else 0.0
        # A large, steady job is answerable for a stall, not for another program's growth.
        big = job.rss > HELD_BY_JOB_RATIO * gauge.whole
        ours = grows or (big and stalled_s > 0)
        return Reading(
            what=gauge.what,
            left_bytes=gauge.left,
            end_left_bytes=end_left,
            whole_bytes=gauge.whole,
            slow_per_s=course.slow_per_s(),
            fast_per_s=course.fast_per_s(),
            ours=ours,
            fresh=fresh,
            in_a_row=climb.in_a_row,
            lasting=lasting and grows,
            bite_bytes=climb.bite,
            jump_bytes=climb.jump if lasting else 0.0,
            alone=alone,
            helper=lasting and grows and alone and self._a_helper_grows(job, now),
            stalled_s=stalled_s if ours else 0.0,
        )

    def _a_helper_grows(self, job: Job, now: float) -> bool:
        if now - self._helper[0] >= job.due_s(QUIET_S):
            self._helper = now, job.leaking_worker(now) is not None
        return self._helper[1]

    def _calm_down(self, ground: Ground, now: float) -> None:
        if self._danger:
            self._quiet_since = 0.0
        elif not self._quiet_since:
            self._quiet_since = now
        elif self._done != Done() and now - self._quiet_since > self._limits.idle_s:
            self._send({"kind": "guard.over", "held_s": round(self._done.held_s, 3)})
            self._done = Done()
            self._kills_before = ground.own.kernel_kills() if ground.own is not None else 0

    # -- acting

    def _begin_hold(self, hold: Hold, now: float, reading: Reading, gauge: Gauge) -> None:
        if not hold.hold():
            self._able = replace(self._able, hold=False)
            return
        self._held_since = now
        if not self._done.held_s:
            after_ms = round(
                (self._clock() - self._calm_at) * 1000, 1
            )  # upper bound: since the last turn without the reason
            self._tell("guard.held", reading, gauge, reacted_ms=after_ms)
            if self._able.ask and not self._done.checkpoint_refused:
                self._ask(Rung.CHECKPOINT, now, reading, gauge)  # carried out while the job runs between two pauses

    def _while_held(self, now: float, reading: Reading) -> float:
        assert self._held_since is not None
        held_s = now - self._held_since
        if held_s < HELD_SLICE_S:
            return HELD_SLICE_S - held_s
        self.release()
        return min(RUN_SLICE_S, max(RUN_LEAST_S, reading.seconds / 4))

    def release(self) -> None:
        if self._held_since is not None and self._ground is not None and self._ground.hold is not None:
            self._ground.hold.release()
            held_s = self._clock() - self._held_since
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

    def _stop(self, ground: Ground, now: float, reading: Reading, gauge: Gauge) -> None:
        job = ground.job
        worker = job.leaking_worker(now)
        if worker is not None and stop.stop_one(worker.pid, lambda _: job.still_there(worker)):
            self.release()  # a process frozen by version 1 dies only when thawed
            name = job.name(worker.pid)
            self._tell("guard.stopped", reading, gauge, reason=gauge.cause, rung="worker", victim=name, whole_job=False)
            self._courses.clear()
            job.forget()
            self._settled_at = now + SETTLE_S
            return
        # Reported before it is done, so that the reason is known when the job ends.
        victim = job.name(job.largest())
        self._tell("guard.stopped", reading, gauge, reason=gauge.cause, rung="job", victim=victim, whole_job=True)
        began = self._clock()
        count = stop.stop_all(job.pids, release=self.release)
        ended = {
            "kind": "guard.ended",
            "processes": count,
            "reacted_ms": round(
                (began - self._not_yet_at) * 1000, 1
            ),  # upper bound: since the last turn without the reason
            "took_ms": round((self._clock() - began) * 1000, 1),
            "major_faults": _major_faults() - self._faults_at_start,
        }
        self._send(ended)
        self._ground = None  # until the next attempt

    # -- the watcher's side

    def trainers(self, pids: list[int]) -> None:
        if self._ground is not None:
            self._ground.job.trainers = set(pids)
            self._able = replace(self._able, ask=bool(pids), hold=self._able.hold and len(pids) <= 1)

    def answered(self, command: str, result: str) -> None:
        if command == "relieve":
            self._done = replace(self._done, relief_answered=True)
            return
        now, saved = self._clock(), result == "saved"
        self._done = replace(
            self._done,
            checkpoint_answered_at=now,
            checkpoint_saved_at=now if saved else self._done.checkpoint_saved_at,
            checkpoint_refused=not saved,
        )

    def _tell(self, kind: str, reading: Reading, gauge: Gauge, **more: Any) -> None:
        saved_at = self._done.checkpoint_saved_at
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
            "major_faults": _major_faults() - self._faults_at_start,
            "checkpoint_saved_s_ago": round(self._clock() - saved_at, 3) if saved_at != float("-inf") else None,
        }
        self._send({**packet, **more})


def _is_the_jobs(place: NewHighs, job: NewHighs, span_s: float) -> bool:
    """The job's own maxima rise as those of the gauge do."""
    rise = place.crest_rise(span_s)
    return rise > 0 and job.crest_rise(span_s) >= OURS_RATIO * rise


def _pace(reading: Reading) -> float:
    quiet_s = QUIET_ALONE_S if reading.alone else QUIET_S
    least = QUICKEST_S if reading.seconds < 1.0 else quiet_s
    return min(SLOWEST_S, max(least, min(reading.left_bytes / FASTEST_PER_S / 3, reading.seconds / 8)))


def _major_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
