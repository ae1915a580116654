"""A scope is asked for only where it takes nobody's job away, and what is asked may answer anything."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jeepney import Endianness, Header, HeaderFields, Message, MessageType

from holdfast.actions.job_cgroups import Groups
from holdfast.actions.scope_rules import why_not
from holdfast.actions.systemd_manager import Manager, Refused
from holdfast.actions.systemd_scope import move_into_scope

MACHINE = Path(__file__).parent / "systemd_machine.sh"
LOGIN = "user.slice/user-1000.slice/session-2.scope"
TERMINAL = "user.slice/user-1000.slice/user@1000.service/app.slice/app-terminal.slice/vte-spawn-1.scope"


def _machine(tmp_path: Path, group: str, uid: int = 1000, **files: str) -> tuple[str, Path]:
    """A tree of groups as systemd makes it, and a /run with a manager's socket."""
    run = tmp_path / "run"
    private = (run if uid == 0 else run / "user" / str(uid)) / "systemd"
    private.mkdir(parents=True, exist_ok=True)
    (private / "private").touch()
    (run / "systemd" / "system").mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "groups" / group
    folder.mkdir(parents=True)
    (folder / "memory.max").write_text("max\n")
    (folder / "cpu.max").write_text("max 100000\n")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return str(folder), run


@pytest.mark.parametrize("group", [LOGIN, TERMINAL])
@pytest.mark.parametrize("uid", [1000, 0])
def test_a_login_and_a_terminal_may_have_one(tmp_path: Path, group: str, uid: int) -> None:
    folder, run = _machine(tmp_path, group, uid)
    assert why_not(folder, uid, run) == ""


@pytest.mark.parametrize(
    "group",
    [
        "system.slice/nightly.service",
        "system.slice/docker-1f.scope",
        "system.slice/slurmstepd.scope/job_7/step_0",
        "user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
        "user.slice/user-1000.slice/user@1000.service/user.slice/libpod-1f.scope/container",
        "user.slice/user-1001.slice/session-2.scope",
        "",
    ],
)
def test_what_belongs_to_somebody_stays(tmp_path: Path, group: str) -> None:
    folder, run = _machine(tmp_path, group)
    assert why_not(folder, 1000, run)


@pytest.mark.parametrize("limit", [{"memory_max": "900\n"}, {"memory_high": "900\n"}, {"cpu_max": "50000 100000\n"}])
def test_a_limit_set_on_purpose_is_not_left(tmp_path: Path, limit: dict[str, str]) -> None:
    folder, run = _machine(tmp_path, LOGIN, **limit)
    assert "limit" in why_not(folder, 1000, run)


def test_a_limit_further_up_goes_along(tmp_path: Path) -> None:
    """The scope lies in the same slice of the user's."""
    folder, run = _machine(tmp_path, LOGIN)
    (Path(folder).parent / "memory.max").write_text("900\n")
    assert why_not(folder, 1000, run) == ""


def test_without_systemd_or_its_manager_there_is_none(tmp_path: Path) -> None:
    folder, run = _machine(tmp_path, LOGIN)
    (run / "user/1000/systemd/private").unlink()
    assert "manager" in why_not(folder, 1000, run)
    shutil.rmtree(run)
    assert "systemd" in why_not(folder, 1000, run)


# -- what the manager may answer


def _answer(kind: MessageType, error: str = "", text: str = "", serial: int = 1) -> bytes:
    fields = {HeaderFields.reply_serial: serial}
    if kind is MessageType.signal:
        fields |= {HeaderFields.path: "/a", HeaderFields.interface: "a.b", HeaderFields.member: "C"}
    if error:
        fields[HeaderFields.error_name] = error
    if text:
        fields[HeaderFields.signature] = "s"
    header = Header(Endianness.little, kind, 0, 1, -1, 9, fields)
    return Message(header, (text,) if text else ()).serialise()


RETURNED = _answer(MessageType.method_return)
SIGNAL = _answer(MessageType.signal, serial=0)


@contextmanager
def _listening(path: Path, talk: Callable[[socket.socket], None]) -> Iterator[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                talk(peer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield str(path)
        thread.join(60)


def _says(*answers: bytes) -> Callable[[socket.socket], None]:
    def talk(peer: socket.socket) -> None:
        assert peer.recv(4096) == b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n"
        peer.sendall(b"OK 0123\r\n")
        heard = b""
        while b"AttachProcessesToUnit" not in heard:
            heard += peer.recv(4096)
        for answer in answers:
            peer.sendall(answer)

    return talk


@contextmanager
def _greeted(path: str) -> Iterator[Manager]:
    with Manager(60.0) as manager:
        manager.greet(path)
        yield manager


def test_what_it_announces_meanwhile_is_passed_over(tmp_path: Path) -> None:
    with (
        _listening(tmp_path / "private", _says(SIGNAL, SIGNAL + RETURNED)) as path,
        _greeted(path) as manager,
    ):
        manager.attach("a.scope", "/b", [1, 2])


def test_a_refusal_is_told_in_its_own_words(tmp_path: Path) -> None:
    with (
        _listening(
            tmp_path / "private",
            _says(_answer(MessageType.error, "org.freedesktop.DBus.Error.AccessDenied", "not yours")),
        ) as path,
        _greeted(path) as manager,
        pytest.raises(Refused, match="not yours"),
    ):
        manager.attach("a.scope", "/b", [1])


@pytest.mark.parametrize(
    "answers", [(), (b"\xff" * 64,), (RETURNED[:20],), (b"l\2\0\1" + b"\1\0\0\0" * 3 + b"\5" * 99,)]
)
def test_nonsense_is_a_failure_like_any(tmp_path: Path, answers: tuple[bytes, ...]) -> None:
    with (
        _listening(tmp_path / "private", _says(*answers)) as path,
        _greeted(path) as manager,
        pytest.raises(OSError),
    ):
        manager.attach("a.scope", "/b", [1])


def test_one_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    def talk(peer: socket.socket) -> None:
        while peer.recv(4096):
            pass

    began = time.monotonic()
    with _listening(tmp_path / "private", talk) as path, Manager(0.2) as manager, pytest.raises(OSError):
        manager.greet(path)
    assert time.monotonic() - began < 20.0, "it was asked to wait for a fifth of a second"


def test_whatever_fails_leaves_the_job_where_it_was(tmp_path: Path) -> None:
    folder, run = _machine(tmp_path, LOGIN, os.geteuid())
    former = Groups(2, {"freezer": str(tmp_path)})
    where = {"name": "77-1", "script_pid": os.getpid(), "run": run}
    groups, reason = move_into_scope(former, folder, str(tmp_path / "groups"), **where)  # type: ignore[arg-type]
    assert groups is former and reason
    assert tmp_path.is_dir()


# -- with systemd itself


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(650)
def test_with_a_real_systemd(tmp_path: Path) -> None:
    """What is asked there and what was seen is in systemd_cases.py."""
    root = os.environ.get("HOLDFAST_SYSTEMD_ROOT")
    if root is None:
        if not all(map(shutil.which, ("dpkg", "systemd-run", "dbus-daemon", "unshare"))):
            pytest.skip("no Debian with systemd to build from, and no HOLDFAST_SYSTEMD_ROOT")
        root = str(tmp_path / "root.tar")
        built = subprocess.run(
            ["bash", str(MACHINE), "build", root], env={**os.environ, "PYTHON": sys.executable},
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert built.returncode == 0, built.stderr
    tried = subprocess.run(
        ["bash", str(MACHINE), "run", root], capture_output=True, text=True, timeout=400, check=False
    )
    if tried.returncode == 77:
        pytest.skip(tried.stdout)
    assert tried.returncode == 0, tried.stdout + tried.stderr
