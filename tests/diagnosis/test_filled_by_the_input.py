"""Memory that fills in the first epoch because the input pipeline keeps its rows, and what only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose
from holdfast.vocabulary import Cause, Event
from tests.story import START, kernel, story

MIB = float(1 << 20)
KILLED = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
BATCH = Event("train.batch", START + 3, {"shape": [8, 65536], "step": 3})  # 2 MiB of float32
EXAMINED = Event("examined", START + 20, {"steps": 40, "growing": [], "partial": False})
HELD = Event("examined", START + 20, {"steps": 40, "growing": [{"kind": "tensor"}], "partial": False})
KERAS = Event("framework", START, {"name": "keras"})
STEPS = [float(10 * i + 4) for i in range(58)]


def _killed(*events: Event, a_step: float, epochs: list[float] | None = None) -> Cause:
    series: dict[str, Any] = {
        "train__rss_bytes": [300 * MIB + a_step * step for step in STEPS],
        "train__rss_bytes_step_count": STEPS,
        "train__steps_count": STEPS,
        "train__epoch_count": epochs or [0.0] * len(STEPS),
    }
    window = story(137, 9, None, [KERAS, kernel(KILLED), *events], **series)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None
    return answer.cause


def _named(cause: Cause) -> bool:
    return any("dataset.cache()" in item.text for item in cause.evidence)


@pytest.mark.parametrize("a_step", [2.1 * MIB, 0.53 * MIB], ids=["float32", "uint8"])
def test_a_cache_that_does_not_fit_is_named_with_its_remedy(a_step: float) -> None:
    cause = _killed(BATCH, EXAMINED, a_step=a_step)
    assert cause.id == "container-memory-limit", "an epoch that was not over shows no leak"
    assert _named(cause) and "cache(" in cause.remedies[0].how


@pytest.mark.parametrize(
    ("events", "a_step", "epochs"),
    [
        ((BATCH, HELD), 2.1 * MIB, None),
        ((BATCH,), 2.1 * MIB, None),
        ((BATCH, EXAMINED), 3.0 * MIB, None),
        ((BATCH, EXAMINED), 2.1 * MIB, [0.0] * 29 + [1.0] * 29),
        ((EXAMINED,), 2.1 * MIB, None),
    ],
    ids=["Python holds it", "nobody looked", "more than a batch", "a second epoch", "no batch seen"],
)
def test_what_only_looks_like_it_is_not_named(
    events: tuple[Event, ...], a_step: float, epochs: list[float] | None
) -> None:
    assert not _named(_killed(*events, a_step=a_step, epochs=epochs))


def kept(what: str, elements: int, element_bytes: float) -> Event:
    data = {"what": what, "elements": elements, "element_bytes": int(element_bytes)}
    return Event("data.kept", START + 2, data)


@pytest.mark.parametrize(
    ("event", "named", "remedy"),
    [
        (kept("shuffle", 20_000, 0.75 * MIB), "dataset.shuffle(20000) keeps up to 20,000 elements", "files.shuffle(len(paths))"),
        (kept("prefetch", 200, 48 * MIB), "dataset.prefetch(200) keeps up to 200 elements", "prefetch(tf.data.AUTOTUNE)"),
        (kept("cache", 20_000, 0.75 * MIB), "dataset.cache() keeps up to 20,000 elements", "train-cache"),
        (kept("shuffle", 100, 0.75 * MIB), "", ""),
    ],
    ids=["shuffle", "prefetch", "cache", "a small buffer"],
)  # fmt: skip
def test_a_buffer_of_the_pipeline_is_named_where_it_takes_much_of_the_memory(
    event: Event, named: str, remedy: str
) -> None:
    window = story(137, 9, None, [KERAS, kernel(KILLED), event], job__held_bytes=[900 * MIB, 1600 * MIB])
    cause = diagnose(window, find_endings(window)).cause
    assert cause is not None and cause.id == "container-memory-limit"
    assert any("keeps up to" in item.text for item in cause.evidence) == bool(named)
    assert any(item.text.startswith(named) for item in cause.evidence)
    assert remedy in cause.remedies[0].how
