"""Whether a level keeps reaching new maxima. What rises and falls again (each step's working memory) does not count."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

SPANS_S = (1.0, 8.0)  # for fast and for slow leaks
PARTS = 10  # that a span is divided into
LEAST_BYTES = 4 << 20  # growth in a span; a steady job varies by less
PARTS_THAT_GREW = 7  # of the ten parts, each with at least…
A_PART_RATIO = 0.03  # …this share of the growth
ONE_PART_RATIO = 0.6  # more of the growth in one part is a jump, not a trend
A_RISE_BYTES = 128 << 10  # between two readings
FRESH_LOOKS = 3  # readings: a rise among the last of them is going on now
BITES = 4  # readings whose largest rise is remembered
SAME_LOOK_S = 0.0015  # readings closer together are one
A_LOOK_S = 0.02  # near the limit readings come at least this often; a rise over a longer time is scaled down to it
BUCKET_S = 0.05  # resolution of what is remembered


@dataclass(slots=True)
class Bucket:
    number: int
    crest: float
    rose: float = 0.0  # above the maximum before
    largest: float = 0.0  # rise between two readings


class NewHighs:
    """Times are the job's own: the time in which it was paused does not count."""

    def __init__(self) -> None:
        self.highest: float | None = None
        self.in_a_row = 0
        self._last_looks: deque[float] = deque(maxlen=BITES)
        self._buckets: deque[Bucket] = deque(maxlen=int(SPANS_S[-1] / BUCKET_S))
        self._at = self._rose_at = 0.0

    def add(self, at: float, level: float, held: bool = False) -> None:
        before = self.highest if self.highest is not None else level
        rise = max(0.0, level - before)
        bite = rise * min(1.0, A_LOOK_S / max(at - self._at, 1e-9))
        the_same_look = held or at - self._at < SAME_LOOK_S
        self.highest, self._at = before + rise, at
        self._rose_at = at if rise else self._rose_at
        if the_same_look and self._last_looks:  # what it took until the pause took effect belongs to the reading before
            self._last_looks[-1] += bite
            self.in_a_row += self.in_a_row == 0 and self._last_looks[-1] >= A_RISE_BYTES
        else:
            self._last_looks.append(bite)
            self.in_a_row = self.in_a_row + 1 if rise >= A_RISE_BYTES else 0
        number = int(at / BUCKET_S)
        if not self._buckets or self._buckets[-1].number != number:
            self._buckets.append(Bucket(number, level))
        bucket = self._buckets[-1]
        bucket.crest = max(bucket.crest, level)
        bucket.rose += rise
        bucket.largest = max(bucket.largest, bite)

    @property
    def fresh(self) -> bool:
        """It is rising now."""
        return any(rise >= A_RISE_BYTES for rise in list(self._last_looks)[-FRESH_LOOKS:])

    @property
    def bite(self) -> float:
        return max(self._last_looks, default=0.0)

    @property
    def jump(self) -> float:
        return max((bucket.largest for bucket in self._last(SPANS_S[0])), default=0.0)

    @property
    def lasting(self) -> bool:
        return self._at - self._rose_at < SPANS_S[-1] / PARTS and any(self._lasts(span_s) for span_s in SPANS_S)

    def crest_rise(self, span_s: float) -> float:
        """How far the maximum of the last span lies above the maximum before it: zero for what rises and falls."""
        since = int((self._at - span_s) / BUCKET_S)
        late = [bucket.crest for bucket in self._buckets if bucket.number >= since]
        early = [bucket.crest for bucket in self._buckets if bucket.number < since] or late[:1]
        return max(0.0, max(late, default=0.0) - max(early, default=0.0))

    def _last(self, span_s: float) -> list[Bucket]:
        since = int((self._at - span_s) / BUCKET_S)
        return [bucket for bucket in self._buckets if bucket.number >= since]

    def _lasts(self, span_s: float) -> bool:
        parts = [0.0] * PARTS
        for bucket in self._last(span_s):
            part = int((self._at / BUCKET_S - bucket.number) * BUCKET_S / span_s * PARTS)
            parts[min(part, PARTS - 1)] += bucket.rose
        grown = sum(parts)
        if grown < LEAST_BYTES or max(parts) > ONE_PART_RATIO * grown or not parts[0]:
            return False
        return sum(part > A_PART_RATIO * grown for part in parts) >= PARTS_THAT_GREW
