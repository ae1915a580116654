"""The engine that started a command is told why it failed, where it looks for that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.actions import tell_engine

TITLE, EVIDENCE, AT = (
    "Rank 1 was killed by the kernel at a memory limit",
    ["kernel log: oom-kill pid=7"],
    1_700_000_000.5,
)


def test_the_error_file_is_as_torchrun_writes_one(tmp_path: Path) -> None:
    file = tmp_path / "0/error.json"
    (told,) = tell_engine.carry_out(TITLE, EVIDENCE, AT, {tell_engine.ERROR_FILE: str(file)}, tmp_path / "none")
    written = json.loads(file.read_text())

    assert told == "torchrun's error file: written"
    # torch/distributed/elastic/multiprocessing/errors: ProcessFailure._get_error_data
    assert written["message"]["message"] == f"holdfast: {TITLE}"
    assert int(written["message"]["extraInfo"]["timestamp"]) == 1_700_000_000
    shown = written["message"]["extraInfo"]["py_callstack"]  # as the traceback, in its report
    assert shown.splitlines() == [f"holdfast: {TITLE}", *EVIDENCE]


def test_what_the_script_has_written_itself_stays(tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    file.write_text('{"message": "mine"}')
    (told,) = tell_engine.carry_out(TITLE, EVIDENCE, AT, {tell_engine.ERROR_FILE: str(file)}, tmp_path / "none")

    assert told.endswith("the script has written it")
    assert file.read_text() == '{"message": "mine"}'


def test_a_pod_gets_a_termination_message_that_fits(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    log.touch()
    tell_engine.carry_out(TITLE, ["x" * 5000], AT, {tell_engine.POD: "10.0.0.1"}, log)

    assert log.read_text().startswith(f"{TITLE}\n- xxx")
    assert log.stat().st_size == tell_engine.TERMINATION_BYTES


@pytest.mark.parametrize(
    ("environment", "there"),
    [
        pytest.param({}, True, id="no pod"),
        pytest.param({tell_engine.POD: "10.0.0.1"}, False, id="a pod whose message is switched off"),
    ],
)
def test_nobody_is_told_where_nobody_asks(tmp_path: Path, environment: dict[str, str], there: bool) -> None:
    log = tmp_path / "termination-log"
    if there:
        log.touch()

    assert not tell_engine.wanted(environment, log)
    assert tell_engine.carry_out(TITLE, EVIDENCE, AT, environment, log) == []
    assert log.exists() == there and (log.read_bytes() if there else b"") == b""


def test_a_file_that_cannot_be_written_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (told,) = tell_engine.carry_out(
        TITLE, EVIDENCE, AT, {tell_engine.ERROR_FILE: str(tmp_path / "file/error.json")}, tmp_path / "none"
    )

    assert told.startswith("torchrun's error file: not written: ")
