"""The batches of an epoch, made ahead by two threads: one reads the next window, the other takes batches from the one before.

Memory is two windows, which are used again and again, and the batches that wait. A batch is a copy, so whoever keeps one keeps no window.
Nor does the next batch come into the memory of one that is kept.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.data.stream.handover import Closed, Handover
from holdfast.data.stream.order import Epoch
from holdfast.data.stream.recycled import Recycled
from holdfast.data.stream.source import Arrays, Column, Source

WINDOWS = 2
Batch = dict[str, "np.ndarray[Any, Any]"]


class _Pass:
    """What the two threads share. It knows nothing of its iterator, so that this can be dropped."""

    def __init__(self, source: Source, columns: tuple[Column, ...], epoch: Epoch, windows: range, waiting: int) -> None:
        self.source, self.columns, self.epoch, self.windows = source, columns, epoch, windows
        self.free: Handover[Arrays] = Handover(WINDOWS)
        self.read: Handover[tuple[int, Arrays]] = Handover(WINDOWS)
        self.made: Handover[tuple[int, Batch]] = Handover(waiting)
        self.error: BaseException | None = None

    def close(self) -> None:
        for handover in (self.free, self.read, self.made):
            handover.close()

    def read_windows(self) -> None:
        reader = self.source.reader()
        for window in self.windows:
            arrays = self.free.get()
            for segment in self.epoch.segments(window):
                part = slice(segment.at, segment.at + segment.rows)
                reader.fill(segment.chunk, segment.begin, {name: array[part] for name, array in arrays.items()})
            self.read.put((window, arrays))
        self.read.close()

    def make_batches(self, first: int) -> None:
        size, memory = self.epoch.order.batch, Recycled()
        while True:
            try:
                window, arrays = self.read.get()
            except Closed:
                break
            mixed, rows = self.epoch.mixed(window), self.epoch.rows_of_window(window)
            numbers = self.epoch.batches_of_window(window)
            for number in numbers:
                at = (number - numbers.start) * size
                if number >= first:
                    self.made.put((number, taken(arrays, mixed, slice(at, min(at + size, rows)), memory)))
            self.free.put(arrays)
        self.made.close()

    def run(self, work: Any, *args: Any) -> None:
        """In a thread. What goes wrong there is raised where the batches are asked for."""
        try:
            work(*args)
        except Closed:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by the iterator
            self.error = error
            self.close()


def taken(arrays: Arrays, mixed: Any, part: slice, memory: Recycled) -> Batch:
    found: Batch = {}
    for name, array in arrays.items():
        found[name] = into = memory.empty((part.stop - part.start, *array.shape[1:]), array.dtype)
        if mixed is None:
            into[...] = array[part]
        else:
            np.take(array, mixed[part], axis=0, out=into, mode="clip")  # in any other mode NumPy copies once more
    return found


class Ahead(Iterator[tuple[int, Batch]]):
    """(number, batch) from batch `first` on, for the windows `start`, `start + step`, …"""

    def __init__(
        self, source: Source, columns: tuple[Column, ...], epoch: Epoch, waiting: int, *, first: int = 0, start: int = 0, step: int = 1
    ) -> None:  # fmt: skip
        begin = first // epoch.order.batches_in_window
        begin += (start - begin) % step
        self._pass = one = _Pass(source, columns, epoch, range(begin, epoch.order.windows, step), waiting)
        rows = min(epoch.order.window_rows, epoch.order.rows)
        for _ in range(min(WINDOWS, len(one.windows))):
            one.free.put({column.name: np.empty((rows, *column.shape), column.dtype) for column in columns})
        self._finalizer = weakref.finalize(self, one.close)
        for name, work in (("read", (one.read_windows,)), ("batch", (one.make_batches, first))):
            threading.Thread(target=one.run, args=work, name=f"holdfast-data-{name}", daemon=True).start()

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> tuple[int, Batch]:
        try:
            return self._pass.made.get()
        except Closed:
            self.close()
            if self._pass.error is not None:
                raise self._pass.error from None
            raise StopIteration from None

    def close(self) -> None:
        self._finalizer()
