"""A card that lowers its clock is told with what it costs; one at its power limit under a steady load is healthy."""

from __future__ import annotations

import pytest

from holdfast.detectors.gpu_throttled import BRAKE, HEAT, POWER_LIMIT, find
from holdfast.vocabulary import Sample, Window

AT = 1_000.0


def window(before: int, after: int, clocks: tuple[int, int], steps: tuple[float, float]) -> Window:
    """A minute with the reasons `before`, then one with `after`."""
    series: dict[str, list[Sample]] = {}

    def take(name: str, value: float, at: float) -> None:
        series.setdefault(name, []).append(Sample(name, value, at))

    for second in range(120):
        late = second >= 60
        take("gpu0.throttle_flags", after if late else before, AT + second)
        take("gpu0.sm_clock_mhz", clocks[late], AT + second + 0.01)
        take("train.step_s", steps[late], AT + second + 0.5)
    take("gpu0.temperature_celsius", 88, AT + 119)
    take("gpu0.power_watts", 310, AT + 119)
    take("gpu0.power_limit_watts", 350, AT + 119)
    return Window([], series)


@pytest.mark.parametrize(
    ("reason", "cause"), [(HEAT, "gpu-overheating"), (BRAKE, "gpu-power-limited"), (POWER_LIMIT, "gpu-power-limited")]
)
def test_it_is_told_with_what_it_costs_each_step(reason: int, cause: str) -> None:
    found = find(window(1, reason, (1980, 1200), (0.1, 0.15)))

    assert found is not None
    assert found.cause == cause
    assert found.headline is not None
    assert found.headline.endswith("each step takes 50% longer")
    told = " ".join(item.text for item in found.evidence)
    assert "1200 MHz then, 1980 MHz otherwise" in told
    assert "88 °C" in told
    assert "310 W of 350 W" in told


@pytest.mark.parametrize(
    "healthy",
    [
        pytest.param(window(POWER_LIMIT, POWER_LIMIT, (1700, 1700), (0.1, 0.1)), id="always at its limit"),
        pytest.param(window(1, POWER_LIMIT, (1980, 1700), (0.1, 0.1)), id="at its limit, no slower"),
        pytest.param(window(1, HEAT, (1980, 1950), (0.1, 0.1)), id="warm"),
        pytest.param(window(1, 1, (1980, 1200), (0.1, 0.15)), id="for another reason"),
        pytest.param(window(HEAT, 1, (1200, 1980), (0.15, 0.1)), id="over"),
    ],
)
def test_a_healthy_card_is_left_alone(healthy: Window) -> None:
    assert find(healthy) is None
