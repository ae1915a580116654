"""Which rung is next while memory runs out: pure, from what was read and what was done.

Each rung up costs the job more, so each needs more certainty. The lower ones go by the trend of seconds, the upper
ones by what is left before the kernel would act by itself. A job that sits steadily near its limit has no trend.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NEVER = float("-inf")


class Rung(Enum):
    CALM = "calm"
    WARN = "warn"
    RELIEVE = "relieve"
    CHECKPOINT = "checkpoint"
    HOLD = "hold"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Thresholds:
    warn_s: float = 45.0
    relieve_s: float = 20.0
    checkpoint_s: float = 10.0
    warn_ratio: float = 0.15  # of the whole is left, or nothing is said
    ask_ratio: float = 0.3  # asking is cheap, and is asked only of what trains already
    hold_s: float = 0.08  # a fast allocator gives no longer notice: 3 GB/s fill 240 MB in it
    hold_near_s: float = 0.3
    hold_near_ratio: float = 0.05
    hold_most_s: float = 3.0  # in one episode; a heartbeat or a socket of the job's may not wait longer
    gone_s: float = 5.0  # until the kernel would kill, at the speed of the last seconds
    gone_fast_s: float = 0.2  # the same at the speed of the last hundredths…
    noise_per_s: float = 64 << 20  # …beyond what a steady job breathes: 2.5 MiB within 40 ms
    slice_margin: float = 1.5
    slice_ratio: float = 0.005  # of the whole, taken in one slice beyond the line: it goes on
    kernel_kills: int = 2  # one may have been a worker that the job can do without
    stalled_hold_s: float = 0.2  # everybody waits for memory: the job is held so that the others get on
    stalled_stop_s: float = 3.0
    again_s: float = 5.0  # between two askings for the same
    patience_s: float = 3.0  # for the answer
    idle_s: float = 10.0  # without danger, and the episode is over


@dataclass(frozen=True, slots=True)
class Reading:
    """One place where memory may run out. Rates are of the job's running time: what is held does not grow."""

    what: str
    left_bytes: float  # until the line that is ours to keep
    real_left_bytes: float  # until the kernel would kill; swap included, where only the job itself would be swapped
    whole_bytes: float
    slow_per_s: float = 0.0  # how fast it shrinks, over seconds
    fast_per_s: float = 0.0  # over hundredths
    ours: bool = True  # it is the job that grows
    stalled_s: float = 0.0  # for how long everybody has been waiting for memory, and the job is the reason

    @property
    def seconds(self) -> float:
        """Until the line, at the higher speed."""
        return min(_until(self.left_bytes, self.slow_per_s), _until(self.left_bytes, self.fast_per_s))


@dataclass(frozen=True, slots=True)
class Able:
    act: bool = True  # `advise` only warns
    hold: bool = True  # not one rank of several
    ask: bool = True  # a training process is there that listens


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
    slice_bytes: float = 0.0  # what the job took when it was last let go between two holds
    kernel_kills: int = 0  # in the job's own group


def decide(reading: Reading, done: Done, able: Able, now: float, limits: Thresholds = Thresholds()) -> Rung:  # noqa: B008 - frozen
    if able.act and reading.ours:
        if _lost(reading, done, able, now, limits):
            return Rung.STOP
        if able.hold and done.held_s < limits.hold_most_s and _racing(reading, limits):
            return Rung.HOLD
    racing = _racing(reading, limits)
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


def in_danger(reading: Reading, limits: Thresholds = Thresholds()) -> bool:  # noqa: B008 - frozen
    return reading.seconds < limits.warn_s or reading.stalled_s > 0 or reading.left_bytes <= 0


def _lost(reading: Reading, done: Done, able: Able, now: float, limits: Thresholds) -> bool:
    """The line is passed and it goes on: or nobody gets on any more, whatever was done about it."""
    if reading.stalled_s >= limits.stalled_stop_s:
        return not (able.ask and _waits(done, now, limits))
    if done.kernel_kills >= limits.kernel_kills:
        return True
    if reading.left_bytes > 0:
        again = done.slice_bytes * (1.0 if _waits(done, now, limits) else limits.slice_margin)
        # 200 processes that wake together take it in one slice; where there is swap it may still go there.
        return 0 < reading.left_bytes < again and reading.real_left_bytes < 2 * again
    if done.slice_bytes > max(limits.slice_ratio * reading.whole_bytes, reading.real_left_bytes):
        return True
    real_s = _until(reading.real_left_bytes, reading.slow_per_s)
    real_fast_s = _until(reading.real_left_bytes, reading.fast_per_s - limits.noise_per_s)
    if real_s >= limits.gone_s and real_fast_s >= limits.gone_fast_s:
        return False
    waits = able.ask and able.hold and _waits(done, now, limits) and done.held_s < limits.hold_most_s
    return not (waits and reading.real_left_bytes > -0.5 * reading.left_bytes)


def _racing(reading: Reading, limits: Thresholds) -> bool:
    if reading.stalled_s >= limits.stalled_hold_s:
        return True
    fast_s = _until(reading.left_bytes, reading.fast_per_s)
    near = reading.left_bytes < limits.hold_near_ratio * reading.whole_bytes
    return fast_s < limits.hold_s or (near and fast_s < limits.hold_near_s)


def _waits(done: Done, now: float, limits: Thresholds) -> bool:
    """For an answer of the training process."""
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
    rarer = min(8, 1 << max(0, done.checkpoints // 2 - 1))  # a danger that never comes true is not paid for for ever
    return now - max(done.checkpoint_saved_at, done.checkpoint_asked_at) > limits.again_s * rarer


def _until(left_bytes: float, per_s: float) -> float:
    return max(0.0, left_bytes) / per_s if per_s > 0 else float("inf")
