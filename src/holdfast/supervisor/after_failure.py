"""Starts the process that tells others of a run that failed: a command, an address. Nothing of it reaches the script."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys

from holdfast.actions import failure_command, post_verdict
from holdfast.supervisor import signals
from holdfast.supervisor.run_spec import RunSpec

PATIENCE_S = failure_command.LIMIT_S + post_verdict.LIMIT_S + 5.0


class _Enough(Exception):
    """A signal says that nobody wants to wait any longer."""


def start(spec: RunSpec) -> subprocess.Popen[bytes] | None:
    """In a session of its own: it goes on also where nobody waits for it."""
    if spec.directory is None or not (spec.on_failure or spec.notify):
        return None
    told = json.dumps({"command": spec.on_failure, "url": spec.notify})  # not as arguments, which everybody can read
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast", "after-failure", str(spec.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=spec.cwd if spec.cwd.is_dir() else "/",
            start_new_session=True,
        )
    except OSError:
        return None
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(told.encode())
        process.stdin.close()
    return process


def start_and_wait(spec: RunSpec) -> None:
    """In a container or under a scheduler all ends with us, so it is waited for, unless a signal comes."""
    if spec.directory is None or not (spec.on_failure or spec.notify):
        return
    try:
        for number in signals.ASK_TO_STOP:
            signal.signal(number, _raise_enough)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.HANDLED)
        process = start(spec)
        if process is not None:
            process.wait(PATIENCE_S)
    except (_Enough, subprocess.TimeoutExpired):
        pass


def _raise_enough(*_: object) -> None:
    raise _Enough
