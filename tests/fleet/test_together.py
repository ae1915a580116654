"""Runs that are one rank each find one another, and are read as one job on one clock."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.cli.recording import read_run
from holdfast.fleet import membership
from holdfast.fleet.events import RankLeft
from holdfast.inside import rank_identity
from holdfast.journal import JournalWriter
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Event, Sample

NOW = time.time() - 600
LOST = "RuntimeError: Connection closed by peer [10.0.0.7]:4411"


def rank_run(
    runs: Path,
    rank: int,
    *ended: Event,
    job: str = "42.0",
    ahead_s: float = 0.0,
    restart: int = 0,
    engine: str = "slurm",
) -> Path:
    """`ahead_s`: by how much the clock of its machine is ahead of the storage's."""
    run = runs / f"20260101-000000-r{rank}{restart}{job.partition('.')[0]}"
    (run / "journal").mkdir(parents=True)
    told = {"engine": engine, "rank": rank, "world_size": 2, "job": job, "restart": restart, "host": f"n{rank}"}
    told |= {"began": NOW + ahead_s, "clock_offset_s": ahead_s, "uncertainty_s": 0.01}
    (run / membership.FILE).write_text(json.dumps(told))
    writer = JournalWriter(run / "journal", "watcher")
    writer.event(Event("run.start", NOW + ahead_s, {"command": ["python", "train.py"], "script_pid": 100}))
    writer.event(Event("machine", NOW + ahead_s, {"boot_id": "then", "pid_namespace": "initial"}))
    writer.samples(NOW + ahead_s + 1, [Sample("train.steps_count", 40.0 + rank, NOW + ahead_s + 1)])
    for event in ended:
        writer.event(Event(event.kind, event.at + ahead_s, event.data))
    writer.close()
    return run


def killed(after_s: float, number: int = 9) -> Event:
    return Exit(128 + number, number).event(NOW + after_s)


def lost_its_peer(after_s: float) -> Sequence[Event]:
    return RankLeft(100, 40, LOST, "train.py:9 in main").event(NOW + after_s), Exit(1).event(NOW + after_s + 0.5)


def test_the_rank_that_was_first_explains_the_job_whichever_is_asked_for(tmp_path: Path) -> None:
    runs = [rank_run(tmp_path, 0, *lost_its_peer(20.1)), rank_run(tmp_path, 1, killed(20.0))]

    for run in runs:
        found = read_run(run, of_the_job=True)
        assert found.run == runs[1]
        assert found.diagnosis.cause is not None
        assert found.diagnosis.cause.title == "Rank 1 was killed by somebody (SIGKILL), not for memory"
        assert any("rank 0 followed 100 ms later" in item.text for item in found.diagnosis.cause.evidence)


@pytest.mark.parametrize("ahead_s", [-30.0, 30.0])
def test_who_was_first_is_told_on_one_clock(tmp_path: Path, ahead_s: float) -> None:
    """Both were killed, rank 1 first; its machine's clock says otherwise."""
    rank_run(tmp_path, 0, killed(22.0))
    run = rank_run(tmp_path, 1, killed(20.0), ahead_s=ahead_s)
    found = read_run(run, of_the_job=True).diagnosis

    assert found.cause is not None
    assert found.cause.title.startswith("Rank 1 was killed")


def test_a_record_that_breaks_off_is_of_a_machine_that_was_lost(tmp_path: Path) -> None:
    rank_run(tmp_path, 0, *lost_its_peer(60.0))
    run = rank_run(tmp_path, 1)
    told = read_run(run, of_the_job=True)

    assert told.run == run
    assert told.diagnosis.cause is not None
    assert told.diagnosis.cause.id == "machine-went-down"
    assert any("rank 1 (on n1) stopped first" in item.text for item in told.diagnosis.cause.evidence)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"job": "43.0"}, id="another job"),
        pytest.param({"job": "n1:29500", "engine": "torchrun"}, id="another engine"),
    ],
)
def test_runs_of_other_jobs_are_left_out(tmp_path: Path, other: dict[str, str]) -> None:
    run = rank_run(tmp_path, 0, *lost_its_peer(20.0))
    rank_run(tmp_path, 1, killed(19.0), **other)  # type: ignore[arg-type]

    assert membership.mates(run, tmp_path.iterdir()) == []
    assert read_run(run, of_the_job=True).run == run


def test_an_address_is_a_job_only_for_a_while(tmp_path: Path) -> None:
    run = rank_run(tmp_path, 0, job="n1:29500", engine="environment")
    later = rank_run(tmp_path, 1, job="n1:29500", engine="environment")
    told = json.loads((later / membership.FILE).read_text())
    (later / membership.FILE).write_text(json.dumps(told | {"began": told["began"] + 2 * membership.TOGETHER_S}))

    assert membership.mates(run, tmp_path.iterdir()) == []


def test_of_a_job_that_was_requeued_the_latest_start_is_read(tmp_path: Path) -> None:
    before = [rank_run(tmp_path, rank, killed(5.0)) for rank in (0, 1)]
    after = [rank_run(tmp_path, rank, killed(300.0 + rank), restart=1) for rank in (0, 1)]

    assert [one.run for one in membership.mates(before[0], tmp_path.iterdir())] == after


def test_a_run_says_which_rank_it_is_and_how_its_clock_stands(tmp_path: Path) -> None:
    identity = rank_identity.of({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7"})
    assert identity is not None
    membership.keep(tmp_path, identity)
    member = membership.member_of(tmp_path)

    assert member is not None
    assert (member.joined.rank, member.joined.job) == (1, "7.0")
    assert abs(member.clock_offset_s) < 1.0
    assert 0.0 < member.uncertainty_s < 1.0
