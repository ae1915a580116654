"""Threads that compete for too few processors are named with the setting that helps; a busy machine alone is not."""

from __future__ import annotations

import pytest

from holdfast.detectors.cpu_oversubscribed import find
from holdfast.vocabulary import Window
from tests.story import story


def wanting(count: float, cores: float = 4.0, seconds: int = 16, **more: list[float | None]) -> Window:
    series: dict[str, list[float | None]] = {
        "job__cpu_wanting_count": [count] * seconds,
        "job__cores_count": [cores] * seconds,
        "job__processes_count": [9.0] * seconds,
        "job__threads_count": [130.0] * seconds,
    }
    return story(None, **(series | more))


def test_it_names_the_threads_the_processors_and_the_setting() -> None:
    finding = find(wanting(33.0))
    assert finding is not None and finding.cause == "cpu-oversubscribed"
    assert finding.evidence[0].text == (
        "33 threads of the job want a processor and there are 4: they take turns; try OMP_NUM_THREADS=1"
    )
    assert "9 processes with 130 threads together" in [item.text for item in finding.evidence]


def test_one_process_is_told_to_use_what_there_is() -> None:
    finding = find(wanting(16.0, job__processes_count=[1.0] * 16))
    assert finding is not None and finding.evidence[0].text.endswith("try OMP_NUM_THREADS=4")


@pytest.mark.parametrize(
    "window",
    [
        wanting(4.0),  # all processors busy
        wanting(8.0),  # a loader's workers beside the model
        wanting(5.0, cores=1.0),  # little is little
        wanting(33.0, seconds=8),  # not long enough
        wanting(0.0, job__cpu_wanting_count=[2.0, 2.0, 2.0, 30.0] * 4),  # now and then
        wanting(0.0, job__cpu_wanting_count=[30.0] * 10 + [3.0] * 6),  # over again
        wanting(33.0, job__cores_count=[None] * 16),
    ],
)
def test_healthy_load_is_silent(window: Window) -> None:
    assert find(window) is None
