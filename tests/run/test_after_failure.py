"""A command and an address are told of a run that failed, once; whatever they do, the run ends as it would have."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.actions import failure_command, post_verdict
from holdfast.journal import Journal
from holdfast.recorded_events import RecordedAction
from tests.workplace import PATIENCE_S, Workplace, is_gone, wait_for

TOKEN = "hf_" + "a1B2c3D4e5" * 3
FAILS = f"import holdfast, os\nholdfast.step()\nprint({TOKEN!r})\nraise ValueError('bad token {TOKEN}')"


class Hook:
    """A server that keeps what it is sent."""

    def __init__(self, status: int = 200, location: str = "") -> None:
        hook = self
        self.got: list[dict[str, Any]] = []
        self.asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.asked.append(f"{self.command} {self.path} {self.headers['Content-Type']}")
                hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook/secret-path"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@contextmanager
def silent_server(drip: bytes = b"") -> Iterator[str]:
    """It takes what is sent and answers nothing, or a byte of an answer now and then."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def serve() -> None:
            taken, _ = server.accept()
            with taken:
                while not over.wait(0.05):
                    if drip:
                        taken.sendall(drip)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        over.set()
        thread.join(1)


def refusing_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/"


def acts(workplace: Workplace) -> dict[str, RecordedAction]:
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    found = map(RecordedAction.of, Journal(run / "journal").events(RecordedAction.KIND))
    return {act.key: act for act in found if act.key.startswith("hook:")}


def test_both_are_told_the_verdict_with_secrets_masked(workplace: Workplace, hook: Hook) -> None:
    command = "cat > verdict.json; env | grep ^HOLDFAST > environment; echo spoken; exit 5"
    done = workplace.run(workplace.script(FAILS), "--on-failure", command, "--notify", hook.url)
    assert done.returncode == 1 and b"spoken" not in done.stdout + done.stderr
    told = json.loads((workplace.path / "verdict.json").read_text())
    assert hook.got == [told] and hook.asked == ["POST /hook/secret-path application/json"]
    assert (told["outcome"], told["cause"]["id"]) == ("failed", "unhandled-exception")
    assert "bad token ***" in json.dumps(told) and TOKEN not in json.dumps(told)
    environment = dict(line.split("=", 1) for line in (workplace.path / "environment").read_text().splitlines())
    environment.pop("HOLDFAST_REPORT")  # what the tests are run with
    assert environment == {
        "HOLDFAST_RUN": told["run"], "HOLDFAST_OUTCOME": "failed", "HOLDFAST_CAUSE": "unhandled-exception",
    }  # fmt: skip
    recorded = acts(workplace)
    assert recorded["hook:command"].result.startswith("exit code 5 after ")
    assert recorded["hook:notify"].result == "answered 200"
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    assert (run / "on-failure.log").read_text() == "spoken\n"
    everything = b"".join(path.read_bytes() for path in (run / "journal").iterdir())
    assert b"secret-path" not in everything, "the address of a hook is a password"
    assert workplace.why()["outcome"] == "failed"


def test_the_script_gets_nothing_of_them(workplace: Workplace, hook: Hook) -> None:
    source = "import os\nprint([name for name in os.environ if 'NOTIFY' in name or 'FAILURE' in name], hook in str(os.environ))"
    command = workplace.script(f"hook = {hook.url!r}\n{source}\nraise SystemExit(3)")
    done = workplace.run(command, "--notify", hook.url, "--on-failure", "true")
    assert (done.returncode, done.stdout) == (3, b"[] False\n")
    assert len(hook.got) == 1


def test_who_finished_or_was_stopped_did_not_fail(workplace: Workplace, hook: Hook) -> None:
    assert workplace.run(workplace.script("print('well')"), "--notify", hook.url).returncode == 0
    process = workplace.start(
        workplace.script("import time; print('ready', flush=True); time.sleep(60)"), "--notify", hook.url
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130
    assert hook.got == []


def test_a_server_that_refuses_is_a_note_in_the_record(workplace: Workplace) -> None:
    bare = workplace.run(workplace.script(FAILS), "--name", "bare")
    told = workplace.run(workplace.script(FAILS), "--notify", refusing_address(), "--name", "told")
    assert (told.returncode, told.stdout) == (bare.returncode, bare.stdout)
    assert told.stderr.replace(b"told", b"bare").splitlines()[:-1] == bare.stderr.splitlines()[:-1]
    (run,) = (workplace.path / ".holdfast/runs").glob("*-told")
    (act,) = Journal(run / "journal").events(RecordedAction.KIND)
    assert RecordedAction.of(act).result == "could not be sent: [Errno 111] Connection refused"


def test_a_signal_ends_the_waiting_and_the_exit_code_stays(workplace: Workplace) -> None:
    with silent_server() as url:
        process = workplace.start(workplace.script(FAILS), "--notify", url)
        (run,) = wait_for(lambda: list((workplace.path / ".holdfast/runs").glob("*")))
        wait_for(lambda: Journal(run / "journal").events("decision") and any(
            event.data["key"] == "hook:notify" for event in Journal(run / "journal").events("decision")
        ))  # fmt: skip
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 1
        assert time.monotonic() - began < 3


def test_where_the_relay_was_killed_the_watcher_tells(workplace: Workplace, hook: Hook) -> None:
    source = "import holdfast, time\nholdfast.step()\ntime.sleep(1.5)\nraise ValueError('alone')"
    process = workplace.start(workplace.script(source), "--notify", hook.url)
    workplace.script_of(process.pid)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    (told,) = wait_for(lambda: hook.got)
    assert told["cause"]["id"] == "unhandled-exception"


# -- the two acts by themselves


def test_a_dead_a_slow_and_a_dripping_server_cost_the_limit_at_most() -> None:
    for drip in (b"", b"H"):
        with silent_server(drip) as url:
            began = time.monotonic()
            assert post_verdict.carry_out(url, b"{}", limit_s=0.4) in (
                "no answer within 0 s",
                "could not be sent: timed out",
            )
            assert time.monotonic() - began < 1.0


def test_a_redirect_is_not_followed() -> None:
    elsewhere = Hook()
    here = Hook(status=302, location=elsewhere.url)
    assert post_verdict.carry_out(here.url, b"{}") == "answered 302"
    assert elsewhere.got == [] and here.got == [{}]
    here.close()
    elsewhere.close()


def test_an_error_of_the_server_and_a_name_that_is_none_are_told() -> None:
    broken = Hook(status=500)
    assert post_verdict.carry_out(broken.url, b"{}") == "answered 500"
    broken.close()
    assert post_verdict.carry_out("http://no.such.host.invalid/", b"{}", limit_s=5).startswith(
        ("could not be sent: ", "no answer within")
    )


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = "trap '' TERM; (trap '' TERM; sleep 61) & echo $!; sleep 62"
    began = time.monotonic()
    result = failure_command.carry_out(command, b"{}", dict(os.environ), log, limit_s=0.3)
    assert result == "ended after 0 s, which is its limit" and time.monotonic() - began < 6
    helper = int(log.read_text())
    wait_for(lambda: is_gone(helper), 5)


def test_a_command_that_reads_nothing_of_a_long_verdict_is_no_trouble(tmp_path: Path) -> None:
    result = failure_command.carry_out("exit 0", b"x" * (1 << 20), dict(os.environ), tmp_path / "log")
    assert result.startswith("exit code 0")


@pytest.mark.parametrize(
    "url", ["ftp://example.org/x", "file:///etc/passwd", "example.org", "http://", "http://a b/", "http://x:99999/",
            "https://hooks.example.org/***", ""],
)  # fmt: skip
def test_an_address_that_is_none_is_told_apart(url: str) -> None:
    assert post_verdict.address_trouble(url)
    assert not post_verdict.address_trouble("https://hooks.example.org:8443/x?y=z")


def test_it_is_named_before_anything_runs(workplace: Workplace) -> None:
    done = workplace.run(["true"], "--notify", "ftp://example.org/x")
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"--notify" in done.stderr and not (workplace.path / ".holdfast").exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example.org/services/T0/B0/x", "https://hooks.example.org/***"),
        ("http://me:word@host:8080", "http://host:8080/***"),
        ("http://host/?token=x", "http://host/***"),
        ("http://host/", "http://host"),
    ],
)
def test_what_is_shown_of_an_address(url: str, shown: str) -> None:
    assert post_verdict.shown_address(url) == shown
