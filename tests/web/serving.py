"""`holdfast serve` as its users start it."""

from __future__ import annotations

import contextlib
import http.client
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.workplace import HOLDFAST


@dataclass(frozen=True)
class Served:
    port: int
    token: str

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        return f"{self.base}/?token={self.token}"

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        """As no browser would: with the headers that are given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()


@contextlib.contextmanager
def serve(directory: Path, cwd: Path, *options: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [*HOLDFAST, "serve", "--port", "0", "--dir", str(directory), *options],
        cwd=cwd, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        link = process.stdout.readline().strip()
        base, _, token = link.partition("/?token=")
        yield Served(int(base.rpartition(":")[2]), token)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        process.stdout.close()
