"""The channel between a training process and the watcher: a small file, mapped by both.

Writing is a copy into memory: it cannot block, and what was written survives kill -9 of the writer, since the pages are
the kernel's. Slots are of one size and are numbered; a slot's number stands at its end and is written last, so a reader
knows a whole one.
The header carries one command the other way.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import struct
from typing import Any

from .never_raise import on_error

MAGIC = b"HFRING2\0"
HEADER_BYTES = 4096
SLOT_BYTES = 128
_HEAD = struct.Struct("<8sII")  # magic, slots, pid
_SLOT = struct.Struct("<BBH4x")  # kind, spare, length; then the body
_NUMBER = struct.Struct("<Q")  # from 1
_COMMAND = struct.Struct("<QI")  # number, length of the JSON behind it
COMMAND_AT = 64
COMMAND_BYTES = 2048
BODY_AT = _SLOT.size
NUMBER_AT = SLOT_BYTES - _NUMBER.size
BODY_BYTES = NUMBER_AT - BODY_AT

STEP, VALUE, TEXT = 1, 2, 3
STEP_BODY = struct.Struct("<dQiBHffB4I")  # at, step, epoch, phase, count, wait_s, compute_s, dimensions, shape
_SHAPE = struct.Struct("<B4I")
# A whole slot in one call, packed in order: its number last. Half of what a step costs is the number of such calls.
_STEP_SLOT = struct.Struct(f"<BBH4xdQiBHff{_SHAPE.size}s{NUMBER_AT - BODY_AT - STEP_BODY.size}xQ")
VALUE_BODY = struct.Struct("<dQd32s")  # at, step, value, name
TEXT_BODY = struct.Struct("<IHH")  # id, part, parts; then a piece of JSON
TEXT_BYTES = BODY_BYTES - TEXT_BODY.size
TEXT_LIMIT = 200 * TEXT_BYTES

PHASES = ("start-up", "compile", "train", "validate", "save", "idle")
TRAIN, VALIDATE = PHASES.index("train"), PHASES.index("validate")


class Writer:
    """In the training process. Every method is a few memory copies; safe from several threads under the GIL."""

    def __init__(self, path: str, slots: int = 4096) -> None:
        size = HEADER_BYTES + slots * SLOT_BYTES
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with on_error(lambda _error: os.unlink(path)):
                os.posix_fallocate(fd, 0, size)  # a hole on a full disk would be a bus error later
                self._map = mmap.mmap(fd, size)
        finally:
            os.close(fd)
        self._slots = slots
        self._numbers = itertools.count(1)
        self._texts = itertools.count(1)
        self._commands_seen = 0
        self._shape: tuple[int, ...] = ()
        self._packed_shape = _SHAPE.pack(0, 0, 0, 0, 0)
        _HEAD.pack_into(self._map, 0, MAGIC, slots, os.getpid())

    def step(
        self,
        at: float,
        step: int,
        epoch: int,
        phase: int,
        count: int,
        wait_s: float,
        compute_s: float,
        shape: tuple[int, ...],
    ) -> None:
        number = next(self._numbers)
        if shape is not self._shape:
            self._shape = shape
            self._packed_shape = _SHAPE.pack(
                min(len(shape), 4), *(min(size, 0xFFFFFFFF) for size in (*shape, 0, 0, 0, 0)[:4])
            )
        _STEP_SLOT.pack_into(
            self._map, HEADER_BYTES + (number - 1) % self._slots * SLOT_BYTES,
            STEP, 0, STEP_BODY.size, at, step, epoch, phase, count, wait_s, compute_s, self._packed_shape, number,
        )  # fmt: skip

    def value(self, at: float, step: int, name: str, value: float) -> None:
        self._put(VALUE, VALUE_BODY.pack(at, step, value, name.encode("utf-8")[:32]))

    def text(self, kind: str, at: float, **data: object) -> None:
        """An event, as JSON over as many slots as it takes."""
        packed = json.dumps({"kind": kind, "at": at, **data}, default=str).encode("utf-8")[:TEXT_LIMIT]
        pieces = [packed[i : i + TEXT_BYTES] for i in range(0, len(packed), TEXT_BYTES)]
        identity = next(self._texts) & 0xFFFFFFFF
        for part, piece in enumerate(pieces):
            self._put(TEXT, TEXT_BODY.pack(identity, part, len(pieces)) + piece)

    def _put(self, kind: int, body: bytes) -> None:
        number = next(self._numbers)
        offset = HEADER_BYTES + (number - 1) % self._slots * SLOT_BYTES
        _NUMBER.pack_into(self._map, offset + NUMBER_AT, 0)
        _SLOT.pack_into(self._map, offset, kind, 0, len(body))
        self._map[offset + BODY_AT : offset + BODY_AT + len(body)] = body
        _NUMBER.pack_into(self._map, offset + NUMBER_AT, number)

    def command(self) -> dict[str, Any] | None:
        """A command that has come since the last call; one integer compare when there is none."""
        number = _NUMBER.unpack_from(self._map, COMMAND_AT)[0]
        if number == self._commands_seen:
            return None
        self._commands_seen = number
        _, length = _COMMAND.unpack_from(self._map, COMMAND_AT)
        start = COMMAND_AT + _COMMAND.size
        return json.loads(bytes(self._map[start : start + min(length, COMMAND_BYTES)]))  # type: ignore[no-any-return]


class Reader:
    """In the watcher. Reads what came since the last call; what was overwritten meanwhile is counted as lost."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        if len(self._map) < HEADER_BYTES or self._map[: len(MAGIC)] != MAGIC:
            raise ValueError("no ring, or not written yet")
        _, self._slots, self.pid = _HEAD.unpack_from(self._map, 0)
        if len(self._map) < HEADER_BYTES + self._slots * SLOT_BYTES or not self._slots:
            raise ValueError("a ring cut short")
        self._next = 1
        self._commands = 0
        self._parts: dict[int, dict[int, bytes]] = {}
        self.lost = 0

    def read(self, limit: int = 20000) -> list[tuple[int, bytes]]:
        """(kind, body) of each whole slot, in order; texts come once all their parts are there, as JSON."""
        found: list[tuple[int, bytes]] = []
        while len(found) < limit:
            offset = HEADER_BYTES + (self._next - 1) % self._slots * SLOT_BYTES
            number = _NUMBER.unpack_from(self._map, offset + NUMBER_AT)[0]
            if number < self._next:
                break
            kind, _, length = _SLOT.unpack_from(self._map, offset)
            body = bytes(self._map[offset + BODY_AT : offset + BODY_AT + min(length, BODY_BYTES)])
            if number > self._next or _NUMBER.unpack_from(self._map, offset + NUMBER_AT)[0] != number:
                newest = max(number, self._next)
                self.lost += newest - self._next
                self._next = newest  # the writer is a whole round ahead: go on from what is here
                if number == 0:
                    break
                continue
            self._next += 1
            if kind == TEXT:
                text = self._whole_text(body)
                if text is not None:
                    found.append((TEXT, text))
            else:
                found.append((kind, body))
        return found

    def _whole_text(self, body: bytes) -> bytes | None:
        identity, part, parts = TEXT_BODY.unpack_from(body)
        got = self._parts.setdefault(identity, {})
        got[part] = body[TEXT_BODY.size :]
        if len(got) < parts:
            return None
        del self._parts[identity]
        return b"".join(got[i] for i in range(parts))

    def send(self, command: dict[str, Any]) -> None:
        packed = json.dumps(command).encode("utf-8")
        if len(packed) > COMMAND_BYTES:
            raise ValueError("a command too long for the ring")
        self._commands += 1
        start = COMMAND_AT + _COMMAND.size
        self._map[start : start + len(packed)] = packed
        _COMMAND.pack_into(self._map, COMMAND_AT, self._commands, len(packed))

    def close(self) -> None:
        self._map.close()
