"""A card that works over less than card and slot can is told; an idle one, and one in a small slot, are left alone."""

from __future__ import annotations

import pytest

from holdfast.detectors.gpu_link import find
from holdfast.vocabulary import Event, Sample, Window

AT = 1_000.0


def window(lanes: float, generation: float, load: float, most: tuple[int, int] = (16, 5), readings: int = 12) -> Window:
    times = [AT + 5 * number for number in range(readings)]
    series = {
        "gpu0.utilisation_percent": [Sample("gpu0.utilisation_percent", load, at) for at in times],
        "gpu0.link_lanes": [Sample("gpu0.link_lanes", lanes, at + 0.1) for at in times],
        "gpu0.link_generation": [Sample("gpu0.link_generation", generation, at + 0.1) for at in times],
    }
    about = {"index": 0, "link_most_lanes": most[0], "link_newest_generation": most[1]}
    return Window([Event("gpu.found", AT, about)], series)


@pytest.mark.parametrize(
    ("lanes", "generation", "words"), [(4, 5, "4 of 16 PCIe lanes"), (16, 1, "PCIe generation 1 of 5")]
)
def test_a_slow_connection_is_told(lanes: int, generation: int, words: str) -> None:
    found = find(window(lanes, generation, load=90))

    assert found is not None
    assert found.cause == "gpu-link-degraded"
    assert found.headline is not None
    assert words in found.headline


@pytest.mark.parametrize(
    "healthy",
    [
        pytest.param(window(16, 5, load=90), id="whole"),
        pytest.param(window(8, 4, load=90, most=(8, 4)), id="all that its slot can"),
        pytest.param(window(16, 1, load=0), id="idle"),
        pytest.param(window(4, 5, load=90, readings=5), id="too short to say"),
        pytest.param(window(0, 0, load=90), id="a virtual card without a link"),
    ],
)
def test_a_healthy_connection_is_left_alone(healthy: Window) -> None:
    assert find(healthy) is None


def test_a_record_of_before_is_read() -> None:
    assert find(Window([Event("gpu.found", AT, {"index": 0, "name": "NVIDIA H200"})], {})) is None
