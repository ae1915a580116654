"""Decides which rung comes next while memory runs out. Pure: readings and earlier actions in, one rung out.

Each higher rung costs the job more and so needs more certainty. The lower rungs follow the trend over seconds. Holding
is cheap and reversible: it needs fast growth to a level never reached before. Stopping is neither: it needs growth that
has lasted, and so little memory left that the job's next allocation would not fit. Where a cgroup limits the job alone,
running out hurts nobody else, so there the job is stopped only right before the kernel would kill it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NEVER = float("-inf")
MIB = 1 << 20


class Rung(Enum):
    CALM = "calm"
    WARN = "warn"
    RELIEVE = "relieve"
    CHECKPOINT = "checkpoint"
    HOLD = "hold"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Thresholds:
    warn_s: float = 45.0  # until the limit: from then on each of these is done
    relieve_s: float = 20.0
    checkpoint_s: float = 10.0
    warn_ratio: float = 0.15  # no warning while more than this share is left
    ask_ratio: float = 0.3  # no question while more than this share is left; asking is cheap
    hold_s: float = 0.08  # one thread was measured to touch 3 GB/s: 240 MB in this time
    hold_near_s: float = 0.3  # instead of `hold_s` where little is left…
    hold_near_ratio: float = 0.05  # …less than this share
    hold_most_s: float = 3.0  # in one episode: heartbeats and sockets of the job may time out if held longer
    looks_in_a_row: int = 4  # readings, each a new high: loading that levels off does not reach this
    bites: float = 2.0  # times the largest recent growth has to fit: a slice that was held spans two readings
    jumps: float = 1.25  # the same for the largest growth within a second, of a job that grows in jumps
    gone_s: float = 0.03  # until the end at the present speed: six readings at 200 Hz
    last_ratio: float = 0.001  # of the whole: some page cache cannot be dropped…
    last_bytes: float = 2 * MIB  # …or this, whichever is more
    helper_ratio: float = 0.005  # the same where a helper is ended instead: the kernel would choose the largest process
    helper_bytes: float = 8 * MIB
    kernel_kills: int = 2  # in one episode: the first may have been a worker that the job can do without
    stalled_hold_s: float = 0.2  # all processes wait for memory: hold the job so that others can run
    stalled_stop_s: float = 3.0  # and stopped after this long
    stalled_alone_factor: float = 3.0  # waits longer where only the job is swapped…
    stalled_steady_factor: float = 5.0  # …and where it has stopped growing: that may pass
    again_s: float = 5.0  # between two requests of the same kind
    patience_s: float = 3.0  # for the answer
    idle_s: float = 10.0  # without danger, then the episode is over


@dataclass(frozen=True, slots=True)
class Reading:
    """One place where memory may run out. Rates are per second of the job's running time, without the time it was held."""

    what: str
    left_bytes: float  # until the limit the guard keeps
    end_left_bytes: float  # until the kernel kills or the machine stalls
    whole_bytes: float
    slow_per_s: float = 0.0  # how fast it shrinks, over seconds
    fast_per_s: float = 0.0  # over hundredths
    ours: bool = True  # it is the job that grows
    fresh: bool = True  # a new high: returning to a level held before is normal
    in_a_row: int = 0  # readings in a row that were each a new high
    lasting: bool = False  # it has grown for a second or more, in many small steps, until now
    bite_bytes: float = 0.0  # the largest growth between two recent readings
    jump_bytes: float = 0.0  # the largest within the last second
    alone: bool = False  # the limit is that of the job's own cgroup
    helper: bool = False  # a helper process of the trainer grows, and can be ended alone
    stalled_s: float = 0.0  # how long all processes have waited for memory because of the job

    @property
    def seconds(self) -> float:
        """Until the guard's limit, at the higher of the two rates."""
        fast_s = _until(self.left_bytes, self.fast_per_s) if self.fresh else float("inf")
        return min(_until(self.left_bytes, self.slow_per_s), fast_s)


@dataclass(frozen=True, slots=True)
class Able:
    act: bool = True  # `advise` only warns
    hold: bool = True  # not for one rank of several: the others would wait for it
    ask: bool = True  # a training process answers requests


@dataclass(frozen=True, slots=True)
class Done:
    """What this episode has seen so far."""

    warned: bool = False
    relief_asked_at: float = NEVER
    relief_answered: bool = False
    checkpoint_asked_at: float = NEVER
    checkpoint_answered_at: float = NEVER
    checkpoint_saved_at: float = NEVER
    checkpoint_refused: bool = False
    checkpoints: int = 0  # asked for
    held_s: float = 0.0
    kernel_kills: int = 0  # in the job's own group


def decide(reading: Reading, done: Done, able: Able, now: float, limits: Thresholds = Thresholds()) -> Rung:
    racing = _racing(reading, limits)
    if able.act and reading.ours:
        if _lost(reading, done, able, now, limits):
            return Rung.STOP
        if able.hold and done.held_s < limits.hold_most_s and racing:
            return Rung.HOLD
    soon_s = reading.seconds if racing else _until(reading.left_bytes, reading.slow_per_s)
    share = reading.left_bytes / max(reading.whole_bytes, 1.0)
    if soon_s < limits.warn_s and not done.warned and (share < limits.warn_ratio or racing):
        return Rung.WARN
    if able.act and able.ask and (share < limits.ask_ratio or racing):
        if soon_s < limits.checkpoint_s and _checkpoint_due(done, soon_s, now, limits):
            return Rung.CHECKPOINT
        if soon_s < limits.relieve_s and _relief_due(done, now, limits):
            return Rung.RELIEVE
    return Rung.CALM


def in_danger(reading: Reading, limits: Thresholds = Thresholds()) -> bool:
    return reading.seconds < limits.warn_s or reading.stalled_s > 0


def _lost(reading: Reading, done: Done, able: Able, now: float, limits: Thresholds) -> bool:
    """Memory is certain to run out, or everything stalls in spite of the lower rungs."""
    if done.kernel_kills >= limits.kernel_kills:
        return True
    if reading.stalled_s >= _bearable_s(reading, limits):
        return not (able.ask and _waits(done, now, limits))
    last = max(limits.last_ratio * reading.whole_bytes, limits.last_bytes)
    if reading.alone:
        if reading.helper:
            last = max(
                limits.helper_ratio * reading.whole_bytes, limits.helper_bytes, limits.jumps * reading.bite_bytes
            )
        return reading.lasting and reading.end_left_bytes < last
    gone = limits.gone_s * max(reading.fast_per_s, reading.slow_per_s)
    if reading.fresh and reading.in_a_row >= limits.looks_in_a_row:
        return reading.end_left_bytes < max(limits.bites * reading.bite_bytes, gone)
    return reading.lasting and reading.end_left_bytes < max(limits.jumps * reading.jump_bytes, gone, last)


def _bearable_s(reading: Reading, limits: Thresholds) -> float:
    steady = 1.0 if reading.fresh or reading.lasting else limits.stalled_steady_factor
    return limits.stalled_stop_s * steady * (limits.stalled_alone_factor if reading.alone else 1.0)


def _racing(reading: Reading, limits: Thresholds) -> bool:
    if reading.stalled_s >= limits.stalled_hold_s:
        return True
    if not reading.fresh:
        return False
    fast_s = _until(reading.left_bytes, reading.fast_per_s)
    near = reading.left_bytes < limits.hold_near_ratio * reading.whole_bytes
    return fast_s < limits.hold_s or (near and fast_s < limits.hold_near_s)


def _waits(done: Done, now: float, limits: Thresholds) -> bool:
    """Whether an answer of the training process is awaited."""
    asked = max(done.relief_asked_at if not done.relief_answered else NEVER, done.checkpoint_asked_at)
    answered = asked == done.checkpoint_asked_at and done.checkpoint_answered_at >= done.checkpoint_asked_at
    return not answered and now - asked < limits.patience_s


def _relief_due(done: Done, now: float, limits: Thresholds) -> bool:
    return now - done.relief_asked_at > 2 * limits.again_s and not _waits(done, now, limits)


def _checkpoint_due(done: Done, soon_s: float, now: float, limits: Thresholds) -> bool:
    if done.checkpoint_refused or _waits(done, now, limits):
        return False
    if done.relief_asked_at == NEVER and soon_s > 0.5 * limits.checkpoint_s:
        return False  # relief is cheaper and there is time for it
    rarer = min(8, 1 << max(0, done.checkpoints // 2 - 1))  # rarer each time, where the danger does not come true
    return now - max(done.checkpoint_saved_at, done.checkpoint_asked_at) > limits.again_s * rarer


def _until(left_bytes: float, per_s: float) -> float:
    return max(0.0, left_bytes) / per_s if per_s > 0 else float("inf")
