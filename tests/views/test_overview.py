"""How a run stands, from a record that grows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.cli.recording import any_alive
from holdfast.views.overview import Overview, RunReader, overview, processes_in_order
from holdfast.vocabulary import Event
from tests.story import GIB, story
from tests.views.recorded_run import PID, RecordedRun


def read(run: Path) -> Overview:
    return RunReader(run, any_alive).read()


def levels(found: Overview) -> dict[str, tuple[float, float | None]]:
    return {level.what: (level.used_bytes, level.limit_bytes) for level in found.memory}


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    run.trains(40)
    run.event("checkpoint.saved", number=1, step=200)
    found = read(run.close())
    assert (found.run, found.outcome, found.is_live, found.until) == ("20261116-120000-baseline", "running", True, None)
    assert found.command == "python train.py --api-key '***'"
    assert found.progress is not None and found.loss is not None and found.gradient_norm is not None
    assert (found.progress.step, found.progress.epoch, found.progress.phase) == (320, 3, "train")
    assert found.progress.steps_per_s == pytest.approx(8.0)
    assert (found.progress.step_s, found.progress.wait_ratio) == (0.125, 0.25)
    assert (found.loss.value, len(found.loss.points), found.gradient_norm.value) == (pytest.approx(4 / 9), 40, 1.5)
    assert levels(found) == {"host": (12 * GIB, 32 * GIB), "job": (4 * GIB, 16 * GIB)}
    assert [level.seconds_left for level in found.memory] == [None, None]
    assert found.cores == pytest.approx(2.0)
    assert found.checkpoint == (200, run.at)
    assert [process.pid for process in found.processes] == [PID]
    assert found.line == ""


def test_what_is_new_is_added_to_what_was_read(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    run.trains(5)
    reader = RunReader(run.path, any_alive)
    first = reader.read()
    assert first == reader.read()
    run.trains(5)
    run.event("process.appeared", pid=77, name="worker", parent=PID, command="worker")
    run.decided("warn", "leak", "memory grows 2 MiB a step")
    second = reader.read()
    assert first.progress is not None and second.progress is not None
    assert (first.progress.step, second.progress.step) == (40, 80)
    assert [process.pid for process in second.processes] == [PID, 77]
    assert second.line == "memory grows 2 MiB a step"
    assert [moment.text for moment in reader.moments()][-1] == second.line


def test_a_finished_run_shows_memory_as_it_was_before_the_end(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path)
    run.trains(30)
    found = read(run.ends())
    assert (found.outcome, found.is_live, found.processes) == ("completed", False, ())
    assert found.until == pytest.approx(run.at - 1.0)
    assert levels(found)["job"] == (4 * GIB, 16 * GIB)


@pytest.mark.parametrize(("code", "outcome"), [(0, "completed"), (1, "failed")])
def test_the_exit_code_says_the_outcome(tmp_path: Path, code: int, outcome: str) -> None:
    assert read(RecordedRun(tmp_path).ends(code)).outcome == outcome


def test_a_run_whose_processes_are_gone_without_an_end_is_unknown(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path)
    run.trains(3)
    found = read(run.close())
    assert (found.outcome, found.until) == ("unknown", run.at)


def test_a_pause_is_seen_until_it_is_over(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    reader = RunReader(run.path, any_alive)
    run.event("job.paused")
    assert (reader.read().outcome, reader.read().is_live) == ("paused", True)
    run.event("job.resumed")
    assert reader.read().outcome == "running"


def test_the_next_attempt_begins_anew(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    run.trains(10)
    run.event("attempt.exit", attempt=1, code=137, signal=9)
    run.event("attempt.start", attempt=2, reason="it was killed", script_pid=PID + 1)
    reader = RunReader(run.path, any_alive)
    found = reader.read()
    assert (found.attempt, found.outcome, found.progress, found.loss) == (2, "running", None, None)
    assert found.command == "python train.py --api-key '***'"
    run.step = 0
    run.trains(2)
    progress = reader.read().progress
    assert progress is not None and progress.step == 16
    assert [moment.text for moment in reader.moments()][-2:] == [
        "attempt 1 was ended by SIGKILL",
        "attempt 2 began: it was killed",
    ]


def grown(tmp_path: Path, seconds: int, per_s: float, live: bool = True) -> Overview:
    run = RecordedRun(tmp_path, live=live)
    run.seconds(seconds, job__held_bytes=4 * GIB, job__held_bytes__per_s=per_s, job__memory_budget_bytes=16 * GIB)
    return read(run.close() if live else run.ends())


def test_the_time_until_it_is_full_is_told_where_it_keeps_growing(tmp_path: Path) -> None:
    level = grown(tmp_path, seconds=60, per_s=GIB / 30).memory[0]
    assert level.seconds_left == pytest.approx((12 - 59 / 30) * 30, rel=0.01)


def test_slow_growth_over_many_minutes_is_told_too(tmp_path: Path) -> None:
    level = grown(tmp_path, seconds=900, per_s=8 * GIB / 3600).memory[0]
    assert level.seconds_left == pytest.approx(10 * 450, rel=0.01)


@pytest.mark.parametrize(
    ("seconds", "per_s"),
    [(60, 0.0), (60, GIB / 3600), (10, GIB / 30), (60, -GIB / 30)],
    ids=["steady", "too slow to say", "too short to say", "shrinking"],
)
def test_no_end_is_told_where_none_is_in_sight(tmp_path: Path, seconds: int, per_s: float) -> None:
    assert grown(tmp_path, seconds, per_s).memory[0].seconds_left is None


def test_a_run_that_has_ended_fills_nothing(tmp_path: Path) -> None:
    assert grown(tmp_path, seconds=60, per_s=GIB / 30, live=False).memory[0].seconds_left is None


def test_a_job_without_a_framework_has_no_progress(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    run.seconds(5, host__memory_total_bytes=8 * GIB, job__rss_bytes=GIB)
    found = read(run.close())
    assert (found.progress, found.loss, found.framework) == (None, None, "")
    assert levels(found) == {"job": (GIB, 8 * GIB)}


def test_gpus_are_named_with_their_memory_against_card_and_budget() -> None:
    window = story(
        None,
        events=[Event("gpu.found", 1.0, {"index": 0, "name": "NVIDIA H200"})],
        gpu0__memory_used_bytes=[10 * GIB],
        gpu0__memory_total_bytes=[140 * GIB],
        gpu0__job_memory_bytes=[8 * GIB],
        gpu0__utilisation_percent=[93.0],
        job__gpu_memory_budget_bytes=[100 * GIB],
    )
    found = overview("r", window)
    assert levels(found) == {"GPU 0": (10 * GIB, 140 * GIB), "GPU 0 job": (8 * GIB, 100 * GIB)}
    assert [(gpu.index, gpu.name, gpu.utilisation_percent, gpu.power_watts) for gpu in found.gpus] == [
        ("0", "NVIDIA H200", 93.0, None)
    ]


def test_a_loss_that_is_no_number_stays_one() -> None:
    loss = overview("r", story(None, train__loss=[1.0, math.nan])).loss
    assert loss is not None and math.isnan(loss.value)


def test_an_empty_record_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    found = read(tmp_path)
    assert (found.outcome, found.since, found.command) == ("unknown", None, "?")


def test_processes_stand_below_their_parents(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    for pid, parent in ((9, 7), (7, PID), (8, PID)):
        run.event("process.appeared", pid=pid, name=f"p{pid}", parent=parent, command=f"\x1b[2Jp{pid}")
    found = read(run.close())
    assert tree(found.processes) == [(0, PID), (1, 7), (2, 9), (1, 8)]
    assert "\x1b" not in "".join(process.command for process in found.processes)


def tree(processes: Iterable[object]) -> list[tuple[int, int]]:
    return [(depth, process.pid) for depth, process in processes_in_order(processes)]  # type: ignore[arg-type]
