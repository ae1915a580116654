"""Runs the command that a user gave for the case of failure: a process group of its own, with a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

LIMIT_S = 60.0
GRACE_S = 2.0  # between SIGTERM and SIGKILL, for one that takes longer


def carry_out(command: str, verdict: bytes, environment: Mapping[str, str], log: Path, limit_s: float = LIMIT_S) -> str:
    """Returns what became of it, for the record. What it prints goes to `log`."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            shown = stack.enter_context(open(log, "ab", opener=_private))
        except OSError:  # the disk may be what failed
            shown = stack.enter_context(open(os.devnull, "ab"))
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.PIPE,
                stdout=shown,
                stderr=shown,
                env=dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"could not be started: {error}"
        try:
            process.communicate(verdict, timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"ended after {limit_s:.0f} s, which is its limit"
        finally:
            if process.stdin is not None:
                with contextlib.suppress(OSError):  # it may not have read all of it
                    process.stdin.close()
    return f"exit code {process.returncode} after {time.monotonic() - began:.1f} s"


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started in its session."""
    for number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            if number == signal.SIGTERM:
                continue  # what it started may go on: SIGKILL for the rest of the group


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
