"""Writes the journal from a thread of its own: a disk that stalls or fills may stop the record, never the watching."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.journal import JournalWriter
from holdfast.vocabulary import Event, Output, Sample

QUEUE_LIMIT = 4096  # records that wait while the disk stalls; further ones are dropped and counted
SYNC_S = 10.0  # between two fsyncs: what a power failure may cost


class JournalThread:
    def __init__(self, directory: Path, stream: str) -> None:
        self._watch = JournalWriter(directory, stream)
        self._output = JournalWriter(directory, f"{stream}-output", keep_segments=(1, 3))
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._dropped = 0
        self._written = threading.Event()
        self._thread = threading.Thread(target=self._write_for_ever, daemon=True, name="recorder")
        self._thread.start()

    @property
    def lost_records(self) -> int:
        return self._dropped + self._watch.lost_records + self._output.lost_records

    def samples(self, at: float, samples: Sequence[Sample]) -> None:
        self._put(lambda: self._watch.samples(at, samples))

    def event(self, event: Event) -> None:
        self._put(lambda: self._watch.event(event))

    def output(self, piece: Output) -> None:
        self._put(lambda: self._output.output(piece))

    def later(self, write: Callable[[], None]) -> None:
        """Anything else that is written to a disk for this run; it may not raise."""
        self._put(write)

    def close(self, patience_s: float) -> bool:
        """True when everything handed over is written: a slow disk may take its time to sync, and nothing is lost by that."""
        self._queue.put(None)
        self._thread.join(patience_s)
        return self._written.is_set()

    def _put(self, write: Callable[[], None]) -> None:
        if self._queue.qsize() < QUEUE_LIMIT:
            self._queue.put(write)
        else:
            self._dropped += 1

    def _write_for_ever(self) -> None:
        synced = time.monotonic()
        while True:
            write = self._queue.get()
            if write is None:
                break
            write()
            if self._queue.empty():
                self._watch.tend(time.time())
                if time.monotonic() - synced > SYNC_S:
                    self._watch.sync()
                    synced = time.monotonic()
        self._written.set()
        for writer in (self._watch, self._output):
            writer.sync()
            writer.close()
