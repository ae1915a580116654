"""One turn of the loop waits for no disk: whatever is written is written by the journal's thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.tick import Watch
from holdfast.vocabulary import Event, Sample

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_written: list[tuple[str, str]] | None = None


def _hook(name: str, arguments: tuple[Any, ...]) -> None:
    if _written is None:
        return
    if name == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        _written.append((threading.current_thread().name, str(arguments[0])))
    elif name in ("os.rename", "os.remove", "os.mkdir", "os.truncate"):
        _written.append((threading.current_thread().name, f"{name} {arguments[0]}"))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Thread and path of everything that is opened for writing, renamed or removed from now on."""
    sys.addaudithook(_hook)  # stays for the life of the process, and does nothing once `_written` is None again
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(sys.modules[__name__], "_written", found)
    return found


def test_what_a_turn_keeps_is_written_by_the_journals_thread(tmp_path: Path, written: list[tuple[str, str]]) -> None:
    run = tmp_path / "state" / "runs" / "one"
    (run / "inside").mkdir(parents=True)
    (run / "journal").mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        watch = Watch(RunSpec(("python", "x.py"), run, tmp_path), "watcher", sleeper.pid, say=lambda _: True)
        written.clear()
        watch.tick(1000.0)
        came_to = [Event("rescue.k", 1001.0, {"k": 4, "where": "train"}), Sample("train.steps_count", 3.0, 1001.0)]
        watch._sources.read = lambda now: list(came_to)  # type: ignore[method-assign]
        watch.tick(1001.0)
        by_the_turn = [one for one in written if one[0] == threading.current_thread().name]
        watch.close(30.0)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert [entry["k"] for entry in json.loads((tmp_path / "state" / "learned.json").read_text()).values()] == [4]
    assert by_the_turn == []
    assert {thread for thread, path in written if "learned.json" in path} == {"recorder"}
