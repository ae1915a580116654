"""What a stream keeps: whole while it is young, thinned later, coarser when the whole outgrows its room."""

from __future__ import annotations

import os
from contextlib import suppress

from holdfast.journal.format import (
    HEADER_BYTES,
    SUFFIX,
    BadRecord,
    Bucket,
    Decoder,
    Frames,
    NewerJournal,
    Row,
    list_segments,
    read_file,
    segment_name,
    unpack_header,
)
from holdfast.journal.thinning import TEMPORARY, Damaged, rewrite
from holdfast.vocabulary import Event

MERGE_SEGMENTS = 8
# 1 MiB of buckets is about 36,000 cells: 45 ms on a shared 2-core machine.
MERGE_BYTES = 1 << 20
COARSER = 4.0
RETRY_S = 30.0


class Closed:
    """A segment nobody writes to any more."""

    __slots__ = ("bucket_s", "first_seq", "last_at", "seq", "size", "state")

    def __init__(self, seq: int, size: int, last_at: float = 0.0, state: str = "whole") -> None:
        self.seq = seq
        self.first_seq = seq
        self.size = size
        self.last_at = last_at
        self.bucket_s = 0.0
        self.state = state  # "unknown" (an earlier writer's), "whole", "thinned", "alone" (damaged: not rewritten)


class Retention:
    def __init__(
        self,
        directory: str,
        stream: str,
        *,
        keep_raw_s: float,
        bucket_s: float,
        max_bytes: int,
        keep_segments: tuple[int, int] | None,
    ) -> None:
        self._directory = directory
        self._stream = stream
        self._keep_raw_s = keep_raw_s
        self._bucket_s = bucket_s
        self._max_bytes = max_bytes
        self._keep_segments = keep_segments
        self._failed_at: float | None = None
        self.segments: list[Closed] = []

    def path(self, seq: int) -> str:
        return f"{self._directory}/{segment_name(self._stream, seq)}"

    def inherit(self) -> None:
        """Takes over what an earlier writer of this stream left, half-done thinning included."""
        self._remove_temporaries()
        for seq in list_segments(self._directory).get(self._stream, ()):
            with suppress(OSError):
                self.segments.append(Closed(seq, os.stat(self.path(seq)).st_size, state="unknown"))
        if self.segments:
            self._mend_tail(self.segments[-1])

    def next_seq(self) -> int:
        return self.segments[-1].seq + 1 if self.segments else 1

    def add(self, segment: Closed) -> None:
        self.segments.append(segment)

    def tend(self, now: float, open_bytes: int) -> Event | None:
        """At most one rewrite a call. An event when something had to go."""
        if self._failed_at is not None and abs(now - self._failed_at) < RETRY_S:
            return None
        try:
            self._failed_at = None
            if self._keep_segments is not None:
                self.drop_middle(open_segments=1 if open_bytes else 0)
                return None
            return self._tend(now, open_bytes)
        except OSError:
            self._failed_at = now
            return None

    def _tend(self, now: float, open_bytes: int) -> Event | None:
        unknown = next((segment for segment in self.segments if segment.state == "unknown"), None)
        if unknown is not None:
            self._learn(unknown)
            return None
        for segment in self.segments:
            if segment.state == "whole" and segment.last_at < now - self._keep_raw_s:
                self._thin([segment], self._bucket_s, now)
                return None
        if open_bytes + sum(segment.size for segment in self.segments) <= self._max_bytes:
            return None
        group = self._group_to_merge()
        if group:
            self._thin(group, group[0].bucket_s * COARSER, now)
            return None
        return self._drop_oldest(now)

    def _thin(self, group: list[Closed], bucket_s: float, now: float) -> None:
        kept = group[-1]
        try:
            size = rewrite([self.path(segment.seq) for segment in group], bucket_s, now)
        except FileNotFoundError:
            self.segments = [segment for segment in self.segments if os.path.exists(self.path(segment.seq))]  # noqa: PTH110
            return
        except Damaged:
            for segment in group:
                segment.state = "alone"
            return
        kept.first_seq = group[0].first_seq
        kept.bucket_s = bucket_s
        kept.state = "thinned"
        kept.size = kept.size if size is None else size
        gone = {segment.seq for segment in group[:-1]}
        self.segments = [segment for segment in self.segments if segment.seq not in gone]

    def _group_to_merge(self) -> list[Closed]:
        """The oldest few neighbours of the coarseness that takes most room: each level ends up with a like share."""
        weight: dict[float, int] = {}
        groups: dict[float, list[Closed]] = {}
        run: list[Closed] = []
        most = min(MERGE_BYTES, self._max_bytes // 8)
        for segment in [*self.segments, Closed(0, 0)]:
            joins = bool(run) and segment.state == "thinned" and segment.bucket_s == run[0].bucket_s
            room = len(run) < MERGE_SEGMENTS and sum(one.size for one in run) + segment.size <= most
            if not (joins and room):
                if len(run) > 1:
                    groups.setdefault(run[0].bucket_s, run)
                run = []
            if segment.state == "thinned":
                weight[segment.bucket_s] = weight.get(segment.bucket_s, 0) + segment.size
                run.append(segment)
        return groups[max(groups, key=lambda level: weight[level])] if groups else []

    def _drop_oldest(self, now: float) -> Event | None:
        """Events are kept whole, so a stream of little else can outgrow its room. The very first segment stays."""
        for segment in self.segments[1:]:
            if segment.state in ("thinned", "alone"):
                self._unlink(segment)
                return Event("journal.dropped", now, {"bytes": segment.size, "until": segment.last_at})
        return None

    def drop_middle(self, open_segments: int) -> None:
        if self._keep_segments is None:
            return
        head, tail = self._keep_segments
        for segment in self.segments[head : max(head, len(self.segments) + open_segments - tail)]:
            self._unlink(segment)

    def _unlink(self, segment: Closed) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path(segment.seq))  # noqa: PTH108
        self.segments.remove(segment)

    def _learn(self, segment: Closed) -> None:
        """How old an earlier writer's segment is, whether it is thinned, and what it stands for."""
        segment.state = "alone"
        try:
            data = read_file(self.path(segment.seq))
            header = unpack_header(data, segment_name(self._stream, segment.seq))
        except FileNotFoundError:
            self.segments.remove(segment)
            return
        except NewerJournal:
            return
        if header is None:
            return
        segment.first_seq, segment.bucket_s = header.first_seq, header.bucket_s
        segment.last_at = last_record_at(data) or header.created
        segment.state = "thinned" if header.bucket_s else "whole"
        for covered in [one for one in self.segments if header.first_seq <= one.seq < segment.seq]:
            self._unlink(covered)

    def _remove_temporaries(self) -> None:
        with suppress(OSError):
            for name in os.listdir(self._directory):  # noqa: PTH208
                if name.startswith(f"{self._stream}-") and name.endswith(SUFFIX + TEMPORARY):
                    os.unlink(f"{self._directory}/{name}")  # noqa: PTH108

    def _mend_tail(self, segment: Closed) -> None:
        """Cuts off what a killed writer left half-written, while it is still known to be just that."""
        with suppress(OSError, NewerJournal):
            data = read_file(self.path(segment.seq))
            if unpack_header(data, "") is None:
                return
            frames = Frames(data, HEADER_BYTES)
            for _ in frames:
                pass
            if frames.fault == "torn" and not frames.whole_frame_follows():
                os.truncate(self.path(segment.seq), frames.offset)
                segment.size = frames.offset


def last_record_at(data: bytes) -> float | None:
    """Of its readings, where it has any: events are never thinned and may carry any time."""
    last_row = last_other = None
    decoder = Decoder()
    with suppress(BadRecord):
        for kind, payload in Frames(data, HEADER_BYTES):
            record = decoder.take(kind, payload)
            if isinstance(record, (Row, Bucket)):
                last_row = record.at
            elif record is not None:
                last_other = record.at
    return last_other if last_row is None else last_row
