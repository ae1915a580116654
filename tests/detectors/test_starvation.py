"""Waiting for data is named after ten seconds of it, with what the data waits for."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.detectors.starvation import find
from holdfast.vocabulary import Window
from tests.story import story


def waiting(ratio: float = 0.8, seconds: int = 14, step_s: float = 0.1, **more: list[Any]) -> Window:
    series: dict[str, list[Any]] = {
        "train__steps_count": [(i + 1) / step_s for i in range(seconds)],
        "train__wait_ratio": [ratio] * seconds,
        "train__step_s": [step_s] * seconds,
    }
    return story(None, **(series | more))


def test_it_is_named_within_fifteen_seconds_and_not_at_once() -> None:
    finding = find(waiting())
    assert finding is not None and finding.cause == "input-starvation"
    assert finding.evidence[0].text.startswith("training waits for data 80% of the time (80 ms of a 100 ms step): ")
    assert find(waiting(seconds=6)) is None


@pytest.mark.parametrize(
    "window",
    [waiting(ratio=0.3), waiting(step_s=0.001), waiting(train__wait_ratio=[0.9, 0.1, 0.2] * 4), waiting(step_s=2.0)],
)
def test_healthy_input_is_silent(window: Window) -> None:
    # Steps of two seconds have barely begun after ten of them.
    assert find(window) is None


def test_a_first_epoch_that_fills_a_cache_is_not_told_of_when_it_is_over() -> None:
    over = [0.8] * 8 + [None] * 5 + [0.01]
    assert find(waiting(train__wait_ratio=over)) is None
    assert find(waiting(train__wait_ratio=[*over[:-1], 0.8])) is not None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"pressure__io_some_percent": [60.0] * 14, "disk__read_bytes": [8e6 * i for i in range(14)]},
            "the disk is slower",
        ),
        ({"disk__read_bytes": [90e6 * i for i in range(14)]}, "the disk gives"),
        ({"net__received_bytes": [20e6 * i for i in range(14)]}, "the network gives"),
        ({"job__cpu_s": [1.0 * i for i in range(14)]}, "preparing the data keeps 1.0 processors busy"),
        ({"job__cpu_s": [0.05 * i for i in range(14)]}, "neither disk, network nor processor"),
    ],
)
def test_it_says_what_the_data_waits_for(more: dict[str, list[float]], words: str) -> None:
    finding = find(waiting(**more))
    assert finding is not None and words in finding.evidence[0].text
