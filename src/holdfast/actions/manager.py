"""Asks a systemd manager on its own socket, in D-Bus: two calls, and no program is started for them.

A child of the watcher's would be taken for a part of the job, and the socket is there without a message bus.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable
from types import TracebackType

METHOD_CALL, METHOD_RETURN, ERROR = 1, 2, 3
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_TO, DESTINATION, SIGNATURE = 1, 2, 3, 4, 5, 6, 8
MANAGER = "org.freedesktop.systemd1.Manager"
LONGEST_BYTES = 1 << 20


class Refused(Exception):
    """In the manager's own words."""


class Manager:
    """One connection, made by `greet`. Everything together takes `patience_s` at most; then OSError, as for whatever else
    fails."""

    def __init__(self, patience_s: float) -> None:
        self._until = time.monotonic() + patience_s
        self._serial = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)

    def greet(self, path: str, uid: int) -> None:
        self._hurry()
        self._socket.connect(path)
        self._socket.sendall(b"\0AUTH EXTERNAL " + str(uid).encode().hex().encode() + b"\r\n")
        answer = b""
        while not answer.endswith(b"\r\n"):
            answer += self._receive(1)
        if not answer.startswith(b"OK"):
            raise Refused(answer.decode("ascii", "replace").strip())
        self._socket.sendall(b"BEGIN\r\n")

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    @property
    def left_s(self) -> float:
        return self._until - time.monotonic()

    def start_scope(self, unit: str, pids: Iterable[int], description: str, slice_name: str = "") -> None:
        """It is made after this returns. It goes by itself once it is empty."""
        body = Body()
        body.text(unit)
        body.text("fail")
        properties = body.array(8)
        for name, value in (
            ("Description", description),
            ("CollectMode", "inactive-or-failed"),
            *((("Slice", slice_name),) if slice_name else ()),
        ):
            body.pad(8)
            body.text(name)
            body.signature("s")
            body.text(value)
        body.pad(8)
        body.text("Delegate")
        body.signature("b")
        body.number(1)
        body.pad(8)
        body.text("PIDs")
        body.signature("au")
        body.numbers(pids)
        body.end(properties)
        body.end(body.array(8))  # no further units
        self._call("StartTransientUnit", "ssa(sv)a(sa(sv))", body)

    def attach(self, unit: str, below: str, pids: Iterable[int]) -> None:
        """Into the group `below` the unit's own. Where a user's manager may not, it asks the machine's."""
        body = Body()
        body.text(unit)
        body.text(below)
        body.numbers(pids)
        self._call("AttachProcessesToUnit", "ssau", body)

    def _call(self, member: str, signature: str, body: Body) -> None:
        self._serial += 1
        self._hurry()
        self._socket.sendall(_message(self._serial, member, signature, bytes(body.data)))
        while True:  # what it announces to everybody comes along
            kind, answers, error, text = self._next()
            if answers == self._serial and kind == METHOD_RETURN:
                return
            if answers == self._serial and kind == ERROR:
                raise Refused(text or error)

    def _next(self) -> tuple[int, int, str, str]:
        """Kind, which call it answers, the name of an error and its text."""
        start = self._receive(16)
        order = "<" if start[:1] == b"l" else ">"
        kind = start[1]
        body_bytes, _, fields_bytes = struct.unpack(f"{order}III", start[4:])
        if body_bytes + fields_bytes > LONGEST_BYTES:
            raise OSError("an answer of unlikely length")
        fields = self._receive(fields_bytes + -fields_bytes % 8)[:fields_bytes]
        body = self._receive(body_bytes)
        try:
            answers, error = _fields(fields, order)
            text = _text(body, 0, order) if kind == ERROR and body else ""
        except (IndexError, struct.error):
            raise OSError("an answer that cannot be read") from None
        return kind, answers, error, text

    def _receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            self._hurry()
            more = self._socket.recv(count - len(data))
            if not more:
                raise OSError("it hung up")
            data += more
        return data

    def _hurry(self) -> None:
        if self.left_s <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(self.left_s)


def _fields(data: bytes, order: str) -> tuple[int, str]:
    """Of a header: which call it answers, and the name of an error."""
    answers, error, at = 0, "", 0
    while at < len(data):
        at += -at % 8
        code, type_code = data[at], chr(data[at + 2])
        at += 2 + data[at + 1] + 1
        if type_code == "g":
            at += 1 + data[at] + 1
            continue
        at += -at % 4
        if type_code in "so":
            error = _text(data, at, order) if code == ERROR_NAME else error
            at += 4 + int(struct.unpack_from(f"{order}I", data, at)[0]) + 1
        else:
            answers = int(struct.unpack_from(f"{order}I", data, at)[0]) if code == REPLY_TO else answers
            at += 4
    return answers, error


def _text(data: bytes, at: int, order: str) -> str:
    (count,) = struct.unpack_from(f"{order}I", data, at)
    return data[at + 4 : at + 4 + count].decode("utf-8", "replace")


class Body:
    """Values in D-Bus's own form, each at a multiple of its size."""

    def __init__(self) -> None:
        self.data = bytearray()

    def pad(self, to: int) -> None:
        self.data += bytes(-len(self.data) % to)

    def number(self, value: int) -> None:
        self.pad(4)
        self.data += struct.pack("<I", value)

    def numbers(self, values: Iterable[int]) -> None:
        array = self.array(4)
        for value in values:
            self.number(value)
        self.end(array)

    def text(self, value: str) -> None:
        data = value.encode()
        self.number(len(data))
        self.data += data + b"\0"

    def signature(self, value: str) -> None:
        self.data += bytes([len(value)]) + value.encode() + b"\0"

    def array(self, to: int) -> tuple[int, int]:
        """What `end` needs, to write how long it has become."""
        self.number(0)
        length_at = len(self.data) - 4
        self.pad(to)
        return length_at, len(self.data)

    def end(self, array: tuple[int, int]) -> None:
        length_at, start = array
        struct.pack_into("<I", self.data, length_at, len(self.data) - start)


def _message(serial: int, member: str, signature: str, body: bytes) -> bytes:
    header = Body()
    header.data += b"l" + bytes([METHOD_CALL, 0, 1]) + struct.pack("<II", len(body), serial)
    fields = header.array(8)
    for code, type_code, value in (
        (PATH, "o", "/org/freedesktop/systemd1"),
        (INTERFACE, "s", MANAGER),
        (MEMBER, "s", member),
        (DESTINATION, "s", "org.freedesktop.systemd1"),
    ):
        header.pad(8)
        header.data.append(code)
        header.signature(type_code)
        header.text(value)
    header.pad(8)
    header.data.append(SIGNATURE)
    header.signature("g")
    header.signature(signature)
    header.end(fields)
    header.pad(8)
    return bytes(header.data) + body
