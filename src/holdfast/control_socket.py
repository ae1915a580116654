"""The control socket of a run: where it is, and how one is asked. For the command line and the screens; imports nothing of ours.

A request is one line of JSON, `{"do": "stacks"}`, and so is its answer: `{"ok": true, …}`, or `{"ok": false, "error": "…"}`. Several
may follow each other on a connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = "control.sock"
VERBS = ("stacks", "checkpoint", "pause", "resume", "stop")
LINE_BYTES = 16 << 20  # of an answer: the stacks of hundreds of processes
PATIENCE_S = 90.0  # a checkpoint is taken when the step is over, and written out


class NoControl(Exception):
    """Nobody serves the run, in one line that says why."""


class Refused(Exception):
    """The run's watcher answered that it cannot, and why."""


def ask(run: Path, do: str, patience_s: float = PATIENCE_S, **data: Any) -> dict[str, Any]:
    """What the watcher of a run answers. Raises NoControl where there is none, and Refused."""
    try:
        with short_path(run) as path, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(patience_s)
            connection.connect(path)
            connection.sendall(json.dumps({"do": do, **data}).encode() + b"\n")
            line = _line(connection)
    except FileNotFoundError:
        raise NoControl("it has no control socket") from None
    except ConnectionError:
        raise NoControl("its watcher is gone") from None
    except PermissionError:
        raise NoControl("it belongs to another user") from None
    except BlockingIOError:
        raise NoControl("too many ask it at the same time") from None
    except TimeoutError:
        raise NoControl(f"its watcher did not answer within {patience_s:.0f} s") from None
    except OSError as error:
        raise NoControl(f"its control socket cannot be used: {error.strerror or error}") from None
    try:
        answer = json.loads(line)
    except ValueError:
        raise NoControl("its watcher is gone") from None
    if not answer.get("ok"):
        raise Refused(str(answer.get("error", "no reason was given")))
    return dict(answer)


@contextlib.contextmanager
def short_path(directory: Path, name: str = NAME) -> Iterator[str]:
    """The socket's path by way of a descriptor: the kernel takes no more than 107 bytes, and directories are longer."""
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{name}"
    finally:
        os.close(folder)


def _line(connection: socket.socket) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size < LINE_BYTES and (piece := connection.recv(1 << 16)):
        pieces.append(piece)
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)
