"""A rank that is slower than the others in every step; and imbalance that is ordinary stays unsaid."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.detectors import straggler
from holdfast.diagnosis.remedies import remedies_for
from holdfast.fleet.events import RankJoined
from holdfast.recorded_events import FIRST_TRAINER
from holdfast.vocabulary import Event, Finding, Sample, Window
from tests.story import START

Pace = Callable[[int], float]


def window(own: list[Pace], waits: list[float] | None = None, computes: float = 0.9, looks: int = 60) -> Window:
    """Of each rank: seconds until the backward pass in each look, two a second, and its share of waiting for data."""
    events = [RankJoined(10 + r, r, len(own), "torchrun", "job").event(START) for r in range(len(own))]
    events.append(Event(FIRST_TRAINER, START, {"pid": 10}))
    series: dict[str, list[Sample]] = {}
    for rank, pace in enumerate(own):
        prefix = "train" if rank == 0 else f"train[{10 + rank}]"
        step_s = max(max(one(look) for one in own) for look in range(looks)) + 0.01

        def add(name: str, values: list[float], prefix: str = prefix) -> None:
            full = f"{prefix}.{name}"
            series[full] = [Sample(full, value, START + 0.5 * i) for i, value in enumerate(values)]

        add("own_s", [pace(look) for look in range(looks)])
        add("own_cpu_s", [computes * pace(look) for look in range(looks)])
        add("steps_count", [10.0 * look for look in range(looks)])
        add("step_s", [step_s] * looks)
        add("wait_ratio", [(waits or [0.0] * len(own))[rank]] * looks)
    return Window(events, series)


def always(seconds: float) -> Pace:
    return lambda _: seconds


def find(*arguments: object, **options: object) -> Finding | None:
    return straggler.find(window(*arguments, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("ranks", [2, 4])
def test_one_that_takes_three_times_as_long_is_named_with_what_it_costs(ranks: int) -> None:
    found = find([*[always(0.02)] * (ranks - 1), always(0.06)])

    assert found is not None
    assert (found.cause, found.subject) == ("straggler", f"rank {ranks - 1}")
    assert "lose 40 ms of each 70 ms step" in found.evidence[0].text


@pytest.mark.parametrize(
    ("options", "reason", "advice"),
    [
        ({"waits": [0.0, 0.6]}, "its data comes late", "holdfast stacks   # rank 1 and its workers"),
        ({"computes": 0.95}, "it computes longer", "ps -eo pid,psr,pcpu"),
        ({"computes": 0.05}, "it waits for something of its own", "holdfast stacks   # rank 1, beside the others"),
    ],
)
def test_the_reason_is_told_where_there_is_one_and_what_to_look_at(
    options: dict[str, object], reason: str, advice: str
) -> None:
    found = find([always(0.02), always(0.06)], **options)

    assert found is not None
    assert found.headline.endswith(reason)
    (only,) = remedies_for(found, "torch")  # no card is there to be compared
    assert only.how.startswith(advice)


def test_cards_are_compared_where_there_are_any() -> None:
    seen = window([always(0.02), always(0.06)])
    clock = "gpu0.sm_clock_mhz"
    with_cards = Window(
        seen.events(), {**{n: seen.series(n) for n in seen.names()}, clock: [Sample(clock, 900.0, START)]}
    )
    found = straggler.find(with_cards)

    assert found is not None
    assert any("nvidia-smi" in remedy.how for remedy in remedies_for(found, "torch"))


@pytest.mark.parametrize(
    ("own", "options"),
    [
        pytest.param([always(0.02), always(0.02)], {}, id="equal"),
        pytest.param([always(0.02), always(0.026)], {}, id="a third longer"),
        pytest.param([lambda i: 0.02 * (1 + i % 4), lambda i: 0.02 * (1 + (i + 2) % 4)], {}, id="long batches at times, on each"),
        pytest.param([lambda i: 3.0 if i % 20 == 0 else 0.02, always(0.02)], {}, id="rank 0 saves now and then"),
        pytest.param([always(0.001), always(0.003), lambda i: 0.9 if i == 50 else 0.001], {}, id="next to nothing of a step"),
        pytest.param([always(0.02), always(0.06)], {"looks": 10}, id="only just begun"),
        pytest.param([always(0.06)], {}, id="alone"),
    ],
)  # fmt: skip
def test_imbalance_that_is_ordinary_is_not_told(own: list[Pace], options: dict[str, object]) -> None:
    assert find(own, **options) is None
