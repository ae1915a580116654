"""A warning needs a trend towards an end in sight."""

from __future__ import annotations

import pytest

from holdfast.detectors.exhaustion import find_edges, pace_s
from holdfast.vocabulary import Event
from tests.story import GIB, START, story

TOTAL = {"host__memory_total_bytes": [16 * GIB] * 60}


def available(values: list[float | None]) -> list[str]:
    window = story(None, host__memory_available_bytes=values, **TOTAL)  # type: ignore[arg-type]
    return [finding.cause for finding in find_edges(window)]


def test_a_steady_fall_close_to_the_end_is_named_with_its_time() -> None:
    values: list[float | None] = [(2.0 - 0.05 * i) * GIB for i in range(20)]
    window = story(None, host__memory_available_bytes=values, **TOTAL)  # type: ignore[arg-type]
    (finding,) = find_edges(window)
    assert finding.seconds_left == pytest.approx(21, abs=1)
    assert finding.evidence[0].text == ("memory: 14.9 GiB of 16 GiB in use, growing 51.2 MiB/s: full in about 21 s")


@pytest.mark.parametrize(
    "values",
    [
        [0.8 * GIB] * 30,  # steady at 95 %
        [12 * GIB] * 10 + [0.5 * GIB] * 3,  # a framework took it all at once
        [(14 - 0.4 * i) * GIB for i in range(20)],  # falling, with much left
        [0.5 * GIB, 0.9 * GIB] * 10,  # up and down
        [(0.2 + 0.05 * i) * GIB for i in range(20)],  # recovering
        [(2.0 - 0.05 * i) * GIB for i in range(5)],  # too few to tell
        [None] * 20,
    ],
)
def test_healthy_courses_are_silent(values: list[float | None]) -> None:
    assert available(values) == []


def test_missing_readings_in_between_do_not_hide_a_trend() -> None:
    values: list[float | None] = [(2.0 - 0.05 * i) * GIB if i % 3 else None for i in range(24)]
    assert available(values) == ["host-memory-exhausted"]


def test_each_gpu_and_each_disk_is_watched_by_itself() -> None:
    rising = [(0.80 + 0.009 * i) * GIB for i in range(20)]
    window = story(
        None,
        gpu0__memory_used_bytes=rising, gpu0__memory_total_bytes=[GIB] * 20,
        gpu1__memory_used_bytes=[10.0] * 20, gpu1__memory_total_bytes=[GIB] * 20,
    )  # fmt: skip
    assert [finding.evidence[0].text.split(":")[0] for finding in find_edges(window)] == ["GPU memory (0)"]


def test_a_temperature_that_climbs_to_its_limit_is_named() -> None:
    rising = [70 + 0.8 * i for i in range(20)]
    window = story(None, cpu__temperature_celsius=rising, cpu__temperature_limit_celsius=[90.0] * 20)  # type: ignore[arg-type]
    (finding,) = find_edges(window)
    assert finding.evidence[0].text.startswith("CPU temperature: 85 °C, rising; the limit of 90 °C in about")


def test_the_pace_quickens_as_memory_gets_tight() -> None:
    def pace(values: list[float | None]) -> float:
        return pace_s(story(None, host__memory_available_bytes=values, **TOTAL))  # type: ignore[arg-type]

    assert pace([10 * GIB] * 5) == 1.0
    assert pace([10 * GIB, 9.99 * GIB]) == 1.0
    assert pace([0.5 * GIB] * 5) == 0.2
    assert pace([4 * GIB, 2 * GIB]) == pytest.approx(0.125)
    assert pace([4 * GIB, 0.1 * GIB]) == 0.05


def test_a_card_taken_within_two_seconds_is_no_trend_however_often_we_look() -> None:
    from holdfast.vocabulary import Sample, Window

    at = [float(i) for i in range(10)] + [10 + 0.05 * i for i in range(60)]
    used = [1.0 * GIB] * 10 + [min(93.0, 1 + 2.5 * i) * GIB for i in range(60)]
    series = {
        "gpu0.memory_used_bytes": [Sample("gpu0.memory_used_bytes", u, t) for u, t in zip(used, at, strict=True)],
        "gpu0.memory_total_bytes": [Sample("gpu0.memory_total_bytes", 100 * GIB, 0.0)],
    }
    for end in range(12, 70):
        shown = {name: samples[:end] for name, samples in series.items()}
        assert find_edges(Window(series=shown)) == []


@pytest.mark.parametrize("before", range(1, 25))
def test_one_jump_is_no_trend_wherever_it_lies(before: int) -> None:
    for after in range(1, 25):
        assert available([12 * GIB] * before + [0.5 * GIB] * after) == []
        assert available([12 * GIB] * before + [5 * GIB] + [0.5 * GIB] * after) == []


def test_a_card_that_others_fill_is_not_this_jobs_alarm() -> None:
    filling = {
        "gpu0__memory_used_bytes": [(0.5 + 0.02 * i) * GIB for i in range(24)],
        "gpu0__memory_total_bytes": [GIB] * 24,
    }
    assert find_edges(story(**filling, gpu0__job_memory_bytes=[0.0] * 24)) == []
    assert find_edges(story(**filling, gpu0__job_memory_bytes=[0.3 * GIB] * 24))
    assert find_edges(story(**filling, gpu0__job_memory_bytes=[None] * 24)), "in a container nobody knows whose it is"


def test_swap_that_others_fill_is_not_this_jobs_alarm() -> None:
    filling = {
        "host__swap_free_bytes": [(1.0 - 0.04 * i) * GIB for i in range(24)],
        "host__swap_total_bytes": [GIB] * 24,
    }
    machine = {"host__memory_total_bytes": [16 * GIB] * 24}
    assert find_edges(story(**filling, **machine, job__rss_bytes=[0.3 * GIB] * 24)) == []
    assert find_edges(story(**filling, **machine, job__rss_bytes=[12 * GIB] * 24))


def test_a_container_that_is_slowed_down_before_its_limit_is_full_there() -> None:
    filling = {"cgroup__memory_working_bytes": [GIB * (4.0 + 0.05 * i) for i in range(24)]}
    limit = {"cgroup__memory_limit_bytes": [16 * GIB] * 24}
    assert find_edges(story(None, **filling, **limit)) == []
    assert find_edges(story(None, **filling, **limit, cgroup__memory_high_bytes=[5.5 * GIB] * 24))


def test_a_budget_counts_what_the_job_holds_and_not_its_resident_sizes() -> None:
    """Eight loader workers that share their parent's pages and libraries have eight times its size."""
    sizes = [GIB * (3.0 + 0.05 * i) for i in range(24)]
    budget = {"job__memory_budget_bytes": [4.3 * GIB] * 24}
    assert find_edges(story(None, **budget, job__rss_bytes=sizes, job__held_bytes=[GIB] * 24)) == []
    assert find_edges(story(None, **budget, job__rss_bytes=sizes, job__held_bytes=sizes))


def test_what_is_being_read_before_the_first_step_is_told_with_the_warning() -> None:
    values: list[float | None] = [(2.0 - 0.05 * i) * GIB for i in range(20)]
    read = {"held_bytes": 3 * GIB, "base_bytes": GIB, "files": [{"path": "/data/all.csv", "bytes": 9 * GIB}]}
    events = [Event("startup.files", START + 10, read)]
    (loading,) = find_edges(story(None, events=events, host__memory_available_bytes=values, **TOTAL))  # type: ignore[arg-type]
    assert loading.evidence[1].text == "it was reading /data/all.csv (9 GiB)"
    series = {"host__memory_available_bytes": values, "train__steps_count": [float(i) for i in range(20)], **TOTAL}
    (training,) = find_edges(story(None, events=events, **series))  # type: ignore[arg-type]
    assert len(training.evidence) == 1
