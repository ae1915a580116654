"""Asks a systemd manager on its own socket, in D-Bus: two calls, and no program is started for them.

A child of the watcher's would be taken for a part of the job, and the socket is there without a message bus. The
messages are jeepney's; the waiting is ours, since everything together has one deadline.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from jeepney import DBusAddress, HeaderFields, Message, MessageType, Parser, new_method_call
from jeepney.auth import AuthenticationError, Authenticator

MANAGER = DBusAddress(
    "/org/freedesktop/systemd1", bus_name="org.freedesktop.systemd1", interface="org.freedesktop.systemd1.Manager"
)
# What jeepney raises on bytes that are no message.
UNREADABLE = (AssertionError, AttributeError, LookupError, TypeError, ValueError, struct.error)


class Refused(Exception):
    """A refusal, in the manager's own words."""


class Manager:
    """One connection, made by `greet`. Everything together takes `patience_s` at most; then OSError, as for whatever else
    fails."""

    def __init__(self, patience_s: float) -> None:
        self._until = time.monotonic() + patience_s
        self._serial = 0
        self._parser = Parser()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)

    def greet(self, path: str) -> None:
        self._hurry()
        self._socket.connect(path)
        greeting = Authenticator()
        try:
            for line in greeting:
                if line:
                    self._socket.sendall(line)
                else:
                    greeting.feed(self._receive())
        except AuthenticationError as error:
            raise Refused(str(error)) from None
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
        properties: list[tuple[str, tuple[str, Any]]] = [
            ("Description", ("s", description)),
            ("CollectMode", ("s", "inactive-or-failed")),
            ("Delegate", ("b", True)),
            ("PIDs", ("au", list(pids))),
        ]
        if slice_name:
            properties.append(("Slice", ("s", slice_name)))
        further_units: list[Any] = []
        self._call("StartTransientUnit", "ssa(sv)a(sa(sv))", (unit, "fail", properties, further_units))

    def attach(self, unit: str, below: str, pids: Iterable[int]) -> None:
        """Into the group `below` the unit's own. Where a user's manager may not, it asks the machine's."""
        self._call("AttachProcessesToUnit", "ssau", (unit, below, list(pids)))

    def _call(self, member: str, signature: str, body: tuple[Any, ...]) -> None:
        self._serial += 1
        self._hurry()
        self._socket.sendall(new_method_call(MANAGER, member, signature, body).serialise(serial=self._serial))
        while True:  # what it announces to everybody comes along
            answer = self._next()
            fields = answer.header.fields
            if fields.get(HeaderFields.reply_serial) != self._serial:
                continue
            if answer.header.message_type is MessageType.method_return:
                return
            if answer.header.message_type is MessageType.error:
                raise Refused(*(answer.body[:1] or (fields.get(HeaderFields.error_name, "it refused"),)))

    def _next(self) -> Message:
        try:
            while (message := self._parser.get_next_message()) is None:
                self._parser.add_data(self._receive())
        except UNREADABLE as error:
            raise OSError("an answer that cannot be read") from error
        return message

    def _receive(self) -> bytes:
        self._hurry()
        data = self._socket.recv(4096)
        if not data:
            raise OSError("it hung up")
        return data

    def _hurry(self) -> None:
        if self.left_s <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(self.left_s)
