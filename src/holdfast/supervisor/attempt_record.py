"""The current attempt in memory, so that its end can be judged without reading the journal back from disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from holdfast.vocabulary import Event, Output, Sample, Window

OF_A_KIND = 200  # events of each kind that are kept
OUTPUT_BYTES = 128 << 10  # the end of each stream that is kept, at least


class AttemptRecord:
    """The latest events of every kind, and the end of the output."""

    def __init__(self) -> None:
        self._events: dict[str, deque[Event]] = {}
        self._output: dict[str, bytearray] = {}

    def event(self, event: Event) -> None:
        self._events.setdefault(event.kind, deque(maxlen=OF_A_KIND)).append(event)

    def output(self, piece: Output) -> None:
        tail = self._output.setdefault(piece.stream, bytearray())
        tail += piece.data
        if len(tail) > 2 * OUTPUT_BYTES:
            del tail[:-OUTPUT_BYTES]

    @property
    def said_goodbye(self) -> bool:
        return "inside.goodbye" in self._events

    def begin_again(self) -> None:
        """For the next attempt. `run.start` is kept."""
        start = self._events.get("run.start", deque())
        self._events = {"run.start": start}
        self._output.clear()

    def window(self, series: Mapping[str, Sequence[Sample]], ended: Event) -> Window:
        events = [event for kind in self._events.values() for event in kind]
        return Window([*events, ended], series, {name: bytes(tail) for name, tail in self._output.items()})
