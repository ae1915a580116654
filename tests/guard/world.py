"""A machine made up for the guard's turns: a clock, one place with an end, a job that grows by a course, a kernel."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

from holdfast.policy.memory_ladder import Able
from holdfast.supervisor.guard.cgroup_placement import LastLine
from holdfast.supervisor.guard.controller import Controller, Ground
from holdfast.supervisor.guard.gauges import Gauge, Group, Machine, Use
from holdfast.supervisor.guard.job import Job
from holdfast.supervisor.guard.memory_stalls import Stalls
from holdfast.supervisor.guard.new_highs import NewHighs

MIB = float(1 << 20)
GIB = float(1 << 30)
GrowthRate = Callable[[float], float]  # the job's level by its own clock
GRAIN_S = 0.0005


class World:
    """`alone`: the job has a group of its own. `loaded`: the guard wakes late, now and then very late."""

    def __init__(
        self,
        course: GrowthRate,
        whole: float,
        *,
        alone: bool,
        others: GrowthRate | None = None,
        machine: bool = False,
        loaded: bool = False,
        hold: bool = True,
    ) -> None:
        self.now = 1000.0
        self.job_s = 0.0
        self.held = False
        self.killed = False
        self.told: list[dict[str, Any]] = []
        self._course, self._others, self._loaded = course, others, loaded
        self._random = random.Random(7)
        self.gauge = cast(Gauge, _made_up(Machine if machine else Group)(self, whole))
        self.gauge.read()
        self.end = whole - self.gauge.margin if alone or machine else whole
        own = cast(Use, _Own(self)) if alone else None
        line = cast(LastLine, _Line()) if alone else None
        self.ground = Ground(cast(Job, _Job(self)), [self.gauge], own, line, _Hold(self) if hold else None)
        self.controller = Controller(self.told.append, Able(hold=hold), cast(Stalls, _NoStalls()), lambda: self.now)

    @property
    def level(self) -> float:
        return self._course(self.job_s)

    @property
    def taken(self) -> float:
        """By the job, and by others, who are not held."""
        return self.level + (self._others(self.now - 1000.0) if self._others is not None else 0.0)

    @property
    def kinds(self) -> list[str]:
        return [str(packet["kind"]) for packet in self.told]

    @property
    def stopped(self) -> bool:
        return "guard.stopped" in self.kinds

    def live(self, seconds: float) -> World:
        """Until it is over for the job, or so many seconds of its own have passed."""
        self.controller.begin(self.ground)
        while not (self.stopped or self.killed) and self.job_s < seconds:
            pause_s = self.controller.turn()
            if not self.stopped:
                self._pass(pause_s + self._late())
        return self

    def _late(self) -> float:
        if not self._loaded:
            return 0.0002
        return self._random.uniform(0.0, 0.03) if self._random.random() < 0.02 else self._random.uniform(0.0, 0.003)

    def _pass(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until and not self.killed:
            step = min(GRAIN_S if self.level > 0.8 * self.end else 8 * GRAIN_S, until - self.now)
            self.now += max(step, 1e-6)
            if not self.held:
                self.job_s += step
                self.killed = self.level > self.end


def _made_up(kind: type[Gauge]) -> Callable[[World, float], Gauge]:
    class MadeUp(kind):  # type: ignore[valid-type,misc]
        def __init__(self, world: World, whole: float) -> None:
            Gauge.__init__(self)
            self._world, self.whole = world, whole
            share, least, most = (0.025, 96, 768) if kind is Machine else (0.015, 8, 256)
            self.reserve = min(max(share * whole, least * MIB), most * MIB)

        def read(self) -> bool:
            self.taken = self._world.taken
            return True

    return MadeUp


class _Own:
    swapped = 0.0

    def __init__(self, world: World) -> None:
        self._world = world
        self.taken = self.usage = 0.0

    def read(self) -> bool:
        self.taken = self.usage = self._world.level
        return True

    def kernel_kills(self) -> int:
        return 0


class _Line:
    def follow(self, *_: object) -> None: ...


class _Hold:
    def __init__(self, world: World) -> None:
        self._world = world

    def hold(self) -> bool:
        self._world.held = True
        return True

    def release(self) -> None:
        self._world.held = False


class _Job:
    def __init__(self, world: World) -> None:
        self._world = world
        self.rss, self.climb, self.trainers = 0.0, NewHighs(), set[int]()

    def look(self, now: float, job_time: float, count: bool) -> None:
        if count:
            self.rss = self._world.level
            self.climb.add(job_time, self.rss)

    def due_s(self, wanted_s: float) -> float:
        return wanted_s

    def leaking_worker(self, now: float) -> None:
        return None

    def pids(self) -> list[int]:
        return []

    def largest(self) -> int:
        return 0

    def name(self, pid: int) -> str:
        return "job"


class _NoStalls:
    def look(self, gauge: Gauge, now: float) -> float:
        return 0.0
