"""A run that fails leaves a report beside its record, says where in one line, and ends as it would have without."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from holdfast.cli import failure_report
from holdfast.journal import Journal
from holdfast.vocabulary import Policy
from tests.web.runs import failed_run, finished_run
from tests.workplace import Workplace, wait_for

MADE = {**os.environ, "HOLDFAST_REPORT": ""}
LINE = b"holdfast: a report of how it ended: .holdfast/runs/"


def reports(workplace: Workplace) -> list[Path]:
    return list((workplace.path / ".holdfast/runs").glob("*/report.html"))


@pytest.mark.alone  # it is given up where it takes too long
def test_a_run_that_fails_says_where_its_report_is(workplace: Workplace) -> None:
    script = workplace.script("import sys; sys.stderr.write('no end of line'); sys.exit(3)")
    done = workplace.run(script, env=MADE)
    (report,) = reports(workplace)
    assert done.returncode == 3
    assert done.stderr == b"no end of line\n" + LINE + report.parent.name.encode() + b"/report.html\n"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600 and b"exit code 3" in report.read_bytes()


@pytest.mark.alone  # it is given up where it takes too long
def test_under_observe_it_is_made_and_nothing_is_said(workplace: Workplace) -> None:
    done = workplace.run(workplace.script("import sys; sys.exit(3)"), "--policy", "observe", env=MADE)
    assert (done.returncode, done.stderr) == (3, b"") and len(reports(workplace)) == 1


def test_a_run_that_finishes_or_is_stopped_has_none(workplace: Workplace) -> None:
    assert workplace.run(workplace.script("pass"), env=MADE).stderr == b""
    started = workplace.start(workplace.script("import time; print('up', flush=True); time.sleep(60)"), env=MADE)
    assert started.stdout is not None and started.stdout.readline() == b"up\n"
    started.send_signal(signal.SIGTERM)
    assert started.wait(timeout=60) == 128 + signal.SIGTERM
    assert reports(workplace) == []


@pytest.mark.alone  # it is given up where it takes too long
def test_one_that_cannot_be_made_is_a_note_in_the_record_and_changes_nothing(workplace: Workplace) -> None:
    """The directory of the run is there, but nothing can be put into it under that name."""
    script = workplace.script(
        """
        import glob, os, sys
        os.mkdir(os.path.join(glob.glob(".holdfast/runs/*")[0], "report.html"))
        sys.exit(4)
        """
    )
    done = workplace.run(script, env=MADE)
    assert done.returncode == 4 and b"Traceback" not in done.stderr
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    (note,) = Journal(run / "journal").events("report.failed")
    assert "cannot write" in note.data["reason"]
    assert workplace.why()["outcome"] == "failed"


def test_what_takes_too_long_is_left_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = failed_run(tmp_path, seconds=20)
    monkeypatch.setenv("HOLDFAST_REPORT", "")
    monkeypatch.setattr(failure_report, "LEAST_S", 0.0)
    monkeypatch.setattr(failure_report, "BASE_S", -1.0)
    monkeypatch.setattr(failure_report, "MOST_S", 0.01)
    said: list[str] = []
    failure_report.after_run(run, Policy.PROTECT, 1, lambda text: bool(said.append(text)))
    (note,) = Journal(run / "journal").events("report.failed")
    assert said == [] and "took longer" in note.data["reason"]


def test_of_a_long_record_it_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = failed_run(tmp_path, time.strftime("%Y%m%d-%H%M%S-now"), seconds=20)
    monkeypatch.setenv("HOLDFAST_REPORT", "")
    with open(run / "journal" / "more-00000001.seg", "wb") as file:
        file.truncate(64 << 20)
    said: list[str] = []
    failure_report.after_run(run, Policy.PROTECT, 1, lambda text: bool(said.append(text)))
    assert said == [f"holdfast: a report of this run, which is long: holdfast why {run.name} --html report.html"]
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("how", ["finished", "switched off", "nothing recorded"])
def test_nobody_waits_for_one_that_is_not_wanted(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_REPORT", "off" if how == "switched off" else "")
    monkeypatch.setattr(failure_report, "_made", lambda *_: pytest.fail("a process was started"))
    run = finished_run(tmp_path) if how != "nothing recorded" else None
    said: list[str] = []
    failure_report.after_run(run, Policy.PROTECT, 0 if how == "finished" else 1, lambda text: bool(said.append(text)))
    assert said == []


@pytest.mark.alone
def test_the_prompt_is_back_within_a_second(workplace: Workplace) -> None:
    """The time it adds, beside the same run without; the better of two."""
    script = workplace.script("import sys; sys.exit(3)")
    added = []
    for _ in range(2):
        times = []
        for environment in (MADE, {**MADE, "HOLDFAST_REPORT": "off"}):
            began = time.monotonic()
            assert workplace.run(script, env=environment).returncode == 3
            times.append(time.monotonic() - began)
        added.append(times[0] - times[1])
    assert min(added) < 1.0, added
    assert wait_for(lambda: len(reports(workplace)) == 2)
