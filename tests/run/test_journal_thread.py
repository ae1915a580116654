"""The record is written by a thread of its own; a disk that is slow to sync has lost nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from holdfast.journal import Journal, JournalWriter
from holdfast.supervisor.journal_thread import JournalThread
from holdfast.vocabulary import Event


def test_what_is_written_counts_though_the_disk_syncs_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on = threading.Event()
    monkeypatch.setattr(JournalWriter, "sync", lambda _: on.wait(60))
    recorder = JournalThread(tmp_path, "watcher")
    recorder.event(Event("run.end", 1.0))
    assert recorder.close(0.5)
    assert [event.kind for event in Journal(tmp_path).events()] == ["run.end"]
    on.set()


def test_what_the_disk_does_not_take_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on = threading.Event()
    monkeypatch.setattr(JournalWriter, "event", lambda *_: on.wait(60))
    recorder = JournalThread(tmp_path, "watcher")
    recorder.event(Event("run.end", 1.0))
    assert not recorder.close(0.1)
    on.set()
