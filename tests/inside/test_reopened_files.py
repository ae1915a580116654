"""What earlier attempts wrote into a file that the script begins anew."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.inside.script_state.reopened_files import ReopenedFiles


@pytest.fixture
def files() -> Iterator[ReopenedFiles]:
    one, before = ReopenedFiles(), builtins.open
    one.install()
    yield one
    one.remove()
    assert builtins.open is before


def test_rows_behind_a_header_come_back(files: ReopenedFiles, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"epoch,loss\n0,0.5\n")
    files.remove()
    files.install()
    with open(log, "w") as file:
        file.write("epoch,loss\n")
    files.put_back()
    with log.open("a") as file:
        file.write("1,0.4\n")
    assert log.read_text() == "epoch,loss\n0,0.5\n1,0.4\n"


def test_a_file_that_is_held_open_goes_on_behind_them(files: ReopenedFiles, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"epoch,loss\n0,0.5\n")
    with open(log, "w") as file:
        file.write("epoch,loss\n")
        files.put_back()
        file.write("1,0.4\n")
    assert log.read_text() == "epoch,loss\n0,0.5\n1,0.4\n"


def test_lines_of_a_log_stay_behind_those_of_the_attempt_before(files: ReopenedFiles, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"10:00 begun\n10:01 epoch 0\n")
    handler = logging.FileHandler(log, mode="w")
    try:
        handler.emit(logging.makeLogRecord({"msg": "10:02 begun"}))
        files.put_back()
        handler.emit(logging.makeLogRecord({"msg": "10:03 epoch 1"}))
    finally:
        handler.close()
    assert log.read_text().split("\n")[:-1] == ["10:00 begun", "10:01 epoch 0", "10:02 begun", "10:03 epoch 1"]


def test_what_was_written_otherwise_and_closed_is_left(files: ReopenedFiles, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_bytes(b'{"epoch": 3}')
    Path(state).write_text('{"epoch": 0}')
    files.put_back()
    assert state.read_text() == '{"epoch": 0}'
