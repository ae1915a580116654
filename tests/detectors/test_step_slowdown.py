"""Steps that became several times slower and stay so, with what changed beside them."""

from __future__ import annotations

import pytest

from holdfast.detectors import step_slowdown
from holdfast.vocabulary import Event, Finding, Sample, Window


def found(
    steps: list[float], *events: Event, waits: float = 0.1, load: tuple[float, float] = (0.5, 0.5)
) -> Finding | None:
    """One reading a second; what is beside changes halfway."""
    half = len(steps) // 2
    series = {
        "train.step_s": [Sample("train.step_s", value, float(at)) for at, value in enumerate(steps)],
        "train.wait_ratio": [Sample("train.wait_ratio", waits, float(at)) for at in range(len(steps))],
        "host.load_ratio": [Sample("host.load_ratio", load[at >= half], float(at)) for at in range(len(steps))],
    }
    return step_slowdown.find(Window(events, series))


SLOWER = [0.1] * 60 + [0.4] * 60


def test_it_is_told_with_what_changed_at_that_moment() -> None:
    told = found(SLOWER, load=(0.5, 3.0))
    assert told is not None
    assert (told.cause, told.headline) == ("step-slowdown", "Steps became 4.0 times slower")
    assert "took 100 ms before" in told.evidence[0].text
    assert told.evidence[0].at == 60.0
    assert [item.text for item in told.evidence[1:]] == [
        "at the same moment: processes that want a processor, for each there is: 3 (before: 0.5)"
    ]


HEALTHY = {
    "steady": [0.1] * 120,
    "twice as slow": [0.1] * 60 + [0.2] * 60,
    "slow for a moment": [0.1] * 60 + [0.5] * 10 + [0.1] * 50,
    "slow again and again": ([0.1] * 9 + [0.6]) * 12,
    "slower and slower": [0.1 * 1.03**at for at in range(120)],
    "only just": [0.1] * 60 + [0.4] * 10,
    "very short steps": [0.0005] * 60 + [0.002] * 60,
    "slow from the start": [0.4] * 120,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_passes_grows_or_is_small_is_left_alone(name: str) -> None:
    assert found(HEALTHY[name]) is None


def test_larger_batches_another_phase_and_waiting_for_data_explain_it() -> None:
    for kind in ("train.batch", "train.phase"):
        assert found(SLOWER, Event(kind, 61.0, {"phase": "train", "shape": [64, 64]})) is None
    assert found(SLOWER, waits=0.8) is None
    assert found(SLOWER, Event("train.phase", 2.0, {"phase": "train"})) is not None
