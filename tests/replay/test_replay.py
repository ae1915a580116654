"""A record, gone through turn by turn, finds what was found while the run went on: live and afterwards cannot disagree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.recording import READ, read_run
from holdfast.cli.replay import LOOKS, Replay, turns
from holdfast.journal import Journal, JournalWriter
from holdfast.vocabulary import Event, Finding, Sample
from tests.replay.findings import alike, told_now, told_then
from tests.workplace import Workplace

RECORDED = Path(__file__).parents[1] / "data" / "recorded-before"
MIB = 1 << 20
START = 1_000_000.0
YOUNG_S = 300.0  # so much of the end is left unthinned here; by default it is three times as much

# Each step keeps 2 MiB and waits for its data four fifths of the time; then the data ends early, as the Keras adapter tells it.
LEAKS_AND_STARVES = """
    import time, holdfast
    from holdfast.inside.api import _Told
    kept = []
    last = begun = time.perf_counter()
    while time.perf_counter() < begun + 13.5:
        time.sleep(0.08)
        kept.append(bytearray(b"1" * (2 << 20)))
        took, last = time.perf_counter() - last, time.perf_counter()
        holdfast.step(loss=1.0, epoch=len(kept) // 60, wait_s=0.8 * took)
    _Told().event("train.data_exhausted", epoch=2, steps_done=13, steps_asked=20)
"""


def _run_of(name: str) -> Path:
    (run,) = (RECORDED / name / "state" / "runs").iterdir()
    return run


@pytest.mark.parametrize(("name", "causes"), [("leak", ["host-memory-leak"]), ("killed", []), ("exception", [])])
def test_a_run_of_an_earlier_version_replays_to_what_was_told_then(name: str, causes: list[str]) -> None:
    then, now = told_then(_run_of(name)), told_now(_run_of(name))
    assert [one.found.cause for one in now] == causes
    assert alike(then, now), (then, now)


def test_a_run_is_found_healthy_by_the_detectors_of_today_whatever_was_told_then() -> None:
    """It was told to near its budget by resident memory, mapped files and all. Its record lacks what counts today."""
    run = _run_of("rescued")
    assert [one.found.key for one in told_then(run)] == ["host-memory-exhausted:the job's memory budget"]
    assert "job.held_bytes" not in {sample.name for sample in Journal(run / "journal").samples()}
    assert told_now(run) == [] and [cause.id for cause in read_run(run).diagnosis.noticed] == []


def test_a_run_recorded_now_replays_to_what_was_told_as_it_went_on(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(LEAKS_AND_STARVES), "--policy", "advise")
    assert done.returncode == 0, done.stderr
    (run,) = (workplace.path / ".holdfast" / "runs").iterdir()
    then, now = told_then(run), told_now(run)
    assert {one.found.cause for one in then} >= {"host-memory-leak", "input-starvation", "data-exhausted"}
    assert alike(then, now), (then, now)
    noticed = {cause.id for cause in read_run(run).diagnosis.noticed}
    assert noticed == {one.found.cause for one in then}, "why goes through it in fewer looks"


def _readings(minutes: int) -> Iterator[list[Sample]]:
    """A second each: memory leaks all the time; data is late for a minute, early on and again at the end."""
    for second in range(60 * minutes):
        at, starved = START + second, second // 60 in (4, minutes - 2)
        yield [
            Sample("train.rss_bytes", 500.0 * MIB + 0.5 * MIB * second, at, step=5 * second),
            Sample("train.steps_count", 5.0 * second, at),
            Sample("train.epoch_count", float(second // 100), at),
            Sample("train.wait_ratio", 0.8 if starved else 0.1, at),
            Sample("train.step_s", 0.2, at),
        ]


def _told(samples: Iterator[Sample], events: list[Event], pause_s: float = 0.0) -> list[tuple[float, Finding]]:
    replay = Replay(READ, pause_s=pause_s)
    for at, readings in turns(samples, events):
        replay.turn(at, readings)
    replay.end_attempt(float("inf"))
    replay.close()
    return replay.told


def test_what_was_told_at_once_is_known_later_with_what_came_of_it() -> None:
    """A turn may come between a value that is no number and what was done about it."""
    bad = {
        "step": 7,
        "seen_in": "loss",
        "origin": "input",
        "input": {"name": "x", "what": "NaN", "rows": [3], "row_count": 1},
    }
    done = {"step": 7, "how": "rows-left-out", "text": "1 of 32 rows left out", "was": "not finite"}
    events = [Event("numerics.non_finite", START + 1, bad), Event("numerics.went_on", START + 3, done)]
    ((at, found),) = _told(iter([Sample("train.step_s", 0.2, START + second) for second in range(1, 6)]), events)
    assert at == START + 1 and found.headline.endswith("that was undone, and the run went on")
    assert found.evidence[-1].text == "1 of 32 rows left out"


def test_where_the_record_was_thinned_the_same_causes_are_found_and_in_its_young_part_the_same_findings(
    tmp_path: Path,
) -> None:
    minutes = 16
    events = [Event("examined", START + 30, {"steps": 20, "growing": []})]
    now = [START]
    writer = JournalWriter(tmp_path / "journal", "watcher", clock=lambda: now[0], segment_s=60.0, keep_raw_s=YOUNG_S)
    for row in _readings(minutes):
        now[0] = row[0].at
        writer.samples(now[0], row)
        writer.tend(now[0])
    writer.close()
    samples = list(Journal(tmp_path / "journal").samples())
    assert len(samples) < 0.7 * 5 * 60 * minutes, "nothing was thinned"
    live = _told((sample for row in _readings(minutes) for sample in row), events)
    replayed = _told(iter(samples), events)
    young = now[0] - YOUNG_S
    assert {finding.key for _, finding in live} == {"host-memory-leak", "input-starvation"}
    assert {finding.key for _, finding in replayed} == {finding.key for _, finding in live}
    # The leak began long before: when its warning is repeated depends on when it was given first.
    late = [(at, finding) for at, finding in live if at >= young and finding.key == "input-starvation"]
    assert late and late == [(at, finding) for at, finding in replayed if at >= young and finding.key == late[0][1].key]
    few = _told(iter(samples), events, pause_s=60.0 * minutes / LOOKS)
    assert {finding.key for _, finding in few} == {finding.key for _, finding in live}
