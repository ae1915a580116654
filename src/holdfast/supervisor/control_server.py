"""Serves the control socket of a run: connections in threads of their own, requests handed to the watcher's loop one by one.

The loop never waits for a connection: `fileno` becomes readable when there are requests, `take` hands them out, and each is
answered whenever its answer is there. Only the same user is served.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.control_socket import NAME, VERBS, short_path
from holdfast.inside.ring_location import MEMORY

CONNECTIONS = 8  # at a time; further ones wait in the kernel's queue…
QUEUE = 128  # …and are refused when that is full
REQUEST_BYTES = 64 << 10
IDLE_S = 30.0  # a connection on which nothing is asked
ANSWER_S = 80.0  # for the loop to answer; less than the client waits
_PEER = struct.Struct("3i")  # pid, uid, gid


@dataclass(slots=True)
class Request:
    """What one connection asks for; answered once, from any thread."""

    do: str
    data: dict[str, Any]
    peer_pid: int
    peer_name: str
    _answers: queue.SimpleQueue[dict[str, Any]] = field(default_factory=queue.SimpleQueue)

    def answer(self, **about: Any) -> None:
        self._answers.put({"ok": True, **about})

    def refuse(self, error: str) -> None:
        self._answers.put({"ok": False, "error": error})

    def wait(self, patience_s: float) -> dict[str, Any]:
        try:
            return self._answers.get(timeout=patience_s)
        except queue.Empty:
            return {"ok": False, "error": f"nothing has come of it within {patience_s:.0f} s"}


class ControlServer:
    def __init__(self, directory: Path, memory: str = MEMORY) -> None:
        """Raises OSError where no socket can be made, neither in the run's directory nor in memory with a link to it."""
        self._directory = directory
        self._target: Path | None = None  # where the socket lies in memory
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._slots = threading.Semaphore(CONNECTIONS)
        self._listener = self._bind(memory)
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        self._closed = False
        threading.Thread(target=self._accept_all, daemon=True, name="control").start()

    @property
    def in_memory(self) -> bool:
        """The run's file system has no sockets."""
        return self._target is not None

    def fileno(self) -> int:
        return self._ours.fileno()

    def wake(self) -> None:
        """The loop looks here soon. Nobody looks any more once it is closed."""
        with contextlib.suppress(OSError):
            self._theirs.send(b"r")

    def take(self) -> list[Request]:
        with contextlib.suppress(BlockingIOError):
            self._ours.recv(4096)
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._requests.get_nowait())
        return found

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        for end in (self._listener, self._ours, self._theirs):
            end.close()
        for path in (self._directory / NAME, self._target):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()

    # -- the socket

    def _bind(self, memory: str) -> socket.socket:
        try:
            return _listening(self._directory, NAME)
        except OSError as error:
            name = f"holdfast-{os.getpid()}-{os.urandom(6).hex()}.sock"
            try:
                listener = _listening(Path(memory), name)
                self._target = Path(memory) / name
                (self._directory / NAME).symlink_to(self._target)
            except OSError:
                if self._target is not None:
                    self._target.unlink()
                raise error from None
            return listener

    # -- connections, each in a thread

    def _accept_all(self) -> None:
        while not self._closed:
            self._slots.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, or out of descriptors: then nobody is served any more
                return
            _in_thread(self._serve, connection, otherwise=self._slots.release)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError):
                connection.settimeout(IDLE_S)
                pid, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
                with connection.makefile("rb") as lines:
                    while line := lines.readline(REQUEST_BYTES):
                        if uid != os.getuid():
                            _send(connection, {"ok": False, "error": "only the user whose run it is may ask"})
                            return
                        _send(connection, self._answer(line, pid))
        finally:
            self._slots.release()

    def _answer(self, line: bytes, pid: int) -> dict[str, Any]:
        try:
            data = json.loads(line)
        except ValueError:
            data = None
        if not isinstance(data, dict) or data.get("do") not in VERBS:
            return {"ok": False, "error": f'no such request; write {{"do": "…"}} with one of {", ".join(VERBS)}'}
        request = Request(str(data.pop("do")), data, pid, _name(pid))
        self._requests.put(request)
        self.wake()
        return request.wait(ANSWER_S)


def _listening(directory: Path, name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # before it has a name: the file is made with this mode
        with short_path(directory, name) as path:
            listener.bind(path)
        listener.listen(QUEUE)
    except OSError:
        listener.close()
        raise
    return listener


def _in_thread(
    serve: Callable[[socket.socket], None], connection: socket.socket, otherwise: Callable[[], None]
) -> None:
    try:
        threading.Thread(target=serve, args=(connection,), daemon=True, name="control").start()
    except RuntimeError:  # no more threads are allowed here
        connection.close()
        otherwise()


def _send(connection: socket.socket, answer: dict[str, Any]) -> None:
    connection.sendall(json.dumps(answer).encode() + b"\n")


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
