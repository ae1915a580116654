"""The control socket: who is served, with what, and that nobody waits for it."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.control_socket import NAME, NoControl, Refused, ask, short_path
from holdfast.supervisor import control_server
from holdfast.supervisor.control_server import ControlServer, Request

Answer = Callable[[Request], None]


class Loop:
    """In place of the watcher's: takes what the server has, and answers."""

    def __init__(self, server: ControlServer, answer: Answer) -> None:
        self.server, self.answer = server, answer
        self.asked: list[Request] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            if select.select([self.server], [], [], 0.05)[0]:
                for request in self.server.take():
                    self.asked.append(request)
                    self.answer(request)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self.server.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Loop]]:
    loops: list[Loop] = []

    def start(directory: Path = tmp_path, answer: Answer = lambda request: request.answer(result=request.do)) -> Loop:
        loops.append(Loop(ControlServer(directory), answer))
        return loops[-1]

    yield start
    for loop in loops:
        loop.close()


def test_a_request_is_answered_and_it_is_known_who_asked(serve: Callable[..., Loop], tmp_path: Path) -> None:
    loop = serve()
    assert ask(tmp_path, "pause", reason="lunch") == {"ok": True, "result": "pause"}
    assert [(one.do, one.data, one.peer_pid) for one in loop.asked] == [("pause", {"reason": "lunch"}, os.getpid())]


def test_only_the_owner_may_open_it(serve: Callable[..., Loop], tmp_path: Path) -> None:
    serve()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.root
def test_another_user_is_not_served_even_where_the_file_lets_him(serve: Callable[..., Loop]) -> None:
    import subprocess
    import sys
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        loop = serve(Path(folder))
        (Path(folder) / NAME).chmod(0o666)
        stranger = (
            "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
            's.sendall(b\'{"do": "stop"}\\n\'); print(s.recv(4096).decode())'
        )
        said = subprocess.check_output([sys.executable, "-c", stranger, f"{folder}/{NAME}"], text=True)
        assert json.loads(said) == {"ok": False, "error": "only the user whose run it is may ask"}
        assert loop.asked == []


def test_a_long_path_is_no_obstacle(serve: Callable[..., Loop], tmp_path: Path) -> None:
    deep = tmp_path / ("long-" * 30) / ("name-" * 30)
    deep.mkdir(parents=True)
    serve(deep)
    assert ask(deep, "resume")["result"] == "resume"


def test_what_was_refused_is_told_with_its_reason(serve: Callable[..., Loop], tmp_path: Path) -> None:
    serve(answer=lambda request: request.refuse("nothing trains"))
    with pytest.raises(Refused, match="nothing trains"):
        ask(tmp_path, "checkpoint")
    with pytest.raises(Refused, match="no such request; write"):
        ask(tmp_path, "dance")


@pytest.mark.parametrize(
    "line", [b"\n", b"dance\n", b"[1]\n", b"\xff\xfe\n", b'{"do": ["stop"]}\n', b"{" * 70_000 + b"\n"]
)
def test_nonsense_is_answered_and_reaches_nobody(serve: Callable[..., Loop], tmp_path: Path, line: bytes) -> None:
    loop = serve()
    with _connected(tmp_path) as connection:
        connection.sendall(line)
        assert b'"ok": false' in connection.recv(4096)
    assert ask(tmp_path, "resume")["ok"]
    assert [one.do for one in loop.asked] == ["resume"]


def test_several_requests_may_follow_each_other_on_a_connection(serve: Callable[..., Loop], tmp_path: Path) -> None:
    serve()
    with _connected(tmp_path) as connection, connection.makefile("rb") as answers:
        for do in ("pause", "resume"):
            connection.sendall(json.dumps({"do": do}).encode() + b"\n")
            assert json.loads(answers.readline())["result"] == do


def test_clients_that_say_nothing_or_do_not_read_keep_nobody_waiting(
    serve: Callable[..., Loop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_server, "IDLE_S", 0.5)
    loop = serve(answer=lambda request: request.answer(result="x" * (4 << 20)))
    silent = [_connected(tmp_path) for _ in range(3 * control_server.CONNECTIONS)]
    for connection in silent[:4]:
        connection.sendall(b'{"do": "stacks"}\n')  # and never reads the answer
    began = time.monotonic()
    assert loop.server.take() is not None
    assert time.monotonic() - began < 0.2
    assert ask(tmp_path, "pause", patience_s=30.0)["ok"]
    for connection in silent:
        connection.close()


def test_a_file_system_without_sockets_gets_a_link_to_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, memory = tmp_path / "run", tmp_path / "memory"
    run.mkdir()
    memory.mkdir()
    listening = control_server._listening

    def refuse_in_the_run(directory: Path, name: str) -> socket.socket:
        if directory == run:
            raise OSError(95, "Operation not supported")
        return listening(directory, name)

    monkeypatch.setattr(control_server, "_listening", refuse_in_the_run)
    loop = Loop(ControlServer(run, str(memory)), lambda request: request.answer())
    assert loop.server.in_memory and (run / NAME).is_symlink()
    assert ask(run, "pause")["ok"]
    loop.close()
    assert list(run.iterdir()) == list(memory.iterdir()) == []


def test_where_there_is_none_it_is_said_why(tmp_path: Path) -> None:
    with pytest.raises(NoControl, match="it has no control socket"):
        ask(tmp_path, "stacks")
    left = socket.socket(socket.AF_UNIX)
    with short_path(tmp_path) as path:
        left.bind(path)
    left.close()
    with pytest.raises(NoControl, match="its watcher is gone"):
        ask(tmp_path, "stacks")


def test_a_server_that_was_closed_leaves_nothing(serve: Callable[..., Loop], tmp_path: Path) -> None:
    serve().close()
    assert list(tmp_path.iterdir()) == []


def _connected(directory: Path) -> Any:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    with short_path(directory) as path:
        connection.connect(path)
    return connection
