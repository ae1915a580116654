"""A watcher that is killed right after it told how the script ended, and before that is on the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from holdfast.journal import Journal
from holdfast.supervisor.relay import Relay
from holdfast.supervisor.relay_link import link_pair
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.streams import Streams


def test_the_relay_records_the_end_that_its_watcher_only_told(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    spec = RunSpec(command=("train",), directory=tmp_path, cwd=tmp_path, policy="observe")
    here, there = link_pair()
    relay = Relay(spec, Streams((0, 1, 2), []), here, watcher_pid=0)
    there.tell("started", pid=2**22 + 1)  # no process has that number
    there.tell("exit", status=3 << 8)
    there.close()
    assert relay.run() == 3
    ends = [event.data for event in Journal(tmp_path / "journal").events() if event.kind == "script.exit"]
    assert ends == [{"code": 3, "signal": None}]


def test_a_script_that_has_not_had_its_first_turn_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its watcher was killed right after it had forked it: to give it up would be to start it twice."""
    script = subprocess.Popen([sys.executable, "-c", "import os, time; time.sleep(1); os.setsid(); time.sleep(60)"])
    monkeypatch.setattr("holdfast.supervisor.job_processes.left_behind", lambda: [psutil.Process(script.pid)])
    spec = RunSpec(command=("train",), directory=tmp_path, cwd=tmp_path, policy="observe")
    here, there = link_pair()
    try:
        assert Relay(spec, Streams((0, 1, 2), []), here, watcher_pid=0)._adopted() == script.pid
    finally:
        script.kill()
        script.wait()
        here.close()
        there.close()
