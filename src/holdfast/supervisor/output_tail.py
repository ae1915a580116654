"""The newest part of a stream, kept small however much is printed."""

from __future__ import annotations

from holdfast.supervisor.relay_link import PIECE_BYTES
from holdfast.vocabulary import Output


class Tail:
    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._data = bytearray()
        self._skipped = 0

    def __bool__(self) -> bool:
        return bool(self._data)

    def add(self, piece: memoryview) -> None:
        over = len(self._data) + len(piece) - PIECE_BYTES
        if over > 0:
            self._skipped += over
            if over >= len(self._data):
                piece = piece[over - len(self._data) :]
                self._data.clear()
            else:
                del self._data[:over]
        self._data += piece

    def peek(self, at: float) -> Output:
        return Output(self._stream, at, bytes(self._data), self._skipped)

    def clear(self) -> None:
        self._data.clear()
        self._skipped = 0
