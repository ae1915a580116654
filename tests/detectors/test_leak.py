"""A slope is a suspicion; a leak is named when it outlives an epoch or something tells what grows."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.detectors import find_endings
from holdfast.detectors.leak import NAMED, SUSPECTED, find_gpu, find_host
from holdfast.diagnosis.verdict import diagnose
from holdfast.vocabulary import Detail, Event, Evidence, Finding, Sample, Window
from tests.story import START, kernel, story

MIB = float(1 << 20)
KILLED = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"


def examined(**grower: Any) -> Event:
    about = {"kind": "data", "what": "arrays (8,) float32", "count": 20, "bytes": 40 * MIB, "holder": "train.kept"}
    return Event("examined", START + 20, {"steps": 20, "growing": [about | grower]})


def growing(
    seconds: int = 30,
    epochs: bool = True,
    events: list[Event] | None = None,
    level: str = "train__rss_bytes",
    **how: Any,
) -> Window:
    """Two MiB a step, five steps a second."""
    series: dict[str, list[float | None]] = {
        level: [500 * MIB + 10 * MIB * i for i in range(seconds)],
        f"{level}_step_count": [5.0 * i for i in range(seconds)],
        "train__steps_count": [5.0 * i for i in range(seconds)],
        "train__epoch_count": [0.0 if epochs else None] * seconds,
    }
    return story(how.pop("code", None), how.pop("signal", None), events=events, **series, **how)


def test_a_slope_in_the_first_epoch_asks_for_a_look_inside() -> None:
    finding = find_host(growing())
    assert finding is not None and finding.confidence == SUSPECTED
    assert finding.growth is not None and finding.growth.unexplained


@pytest.mark.parametrize(
    "grower",
    [
        {"kind": "graph", "what": "tensors () float32, each with its graph", "bytes": 80},
        {"kind": "trace", "what": "traces of step", "bytes": 0},
        {"kind": "variable", "what": "variables (8,)", "bytes": 0},
    ],
)
def test_what_nobody_keeps_on_purpose_is_named_at_once(grower: dict[str, Any]) -> None:
    finding = find_host(growing(15, events=[examined(**grower)]))
    assert finding is not None and finding.confidence == NAMED
    assert finding.evidence[0].text == f"memory grows 2 MiB a step: 20 more {grower['what']}, held by train.kept"


def test_what_a_list_holds_may_be_for_the_end_of_the_epoch() -> None:
    early, late = (find_host(growing(seconds, events=[examined()])) for seconds in (20, 40))
    assert early is not None and early.confidence == SUSPECTED
    assert late is not None and late.confidence == NAMED
    assert late.evidence[-1].text == "memory of the job: 520 MiB at step 10, 890 MiB at step 195"


def test_a_cache_of_the_data_set_is_left_alone_in_the_first_epoch() -> None:
    finding = find_host(growing(60, events=[examined(of_the_data=True)]))
    assert finding is not None and finding.confidence == SUSPECTED


def test_a_buffer_that_fills_is_no_leak_however_long_it_takes() -> None:
    for seconds in (40, 200):
        finding = find_host(growing(seconds, events=[examined(bounded=True)]))
        assert finding is not None and finding.confidence == SUSPECTED
    limit = {"cgroup__memory_limit_bytes": [900 * MIB] * 40}
    window = growing(40, events=[examined(bounded=True), kernel(KILLED)], code=137, signal=9, **limit)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_what_nobody_holds_waits_for_the_script_to_collect_where_it_does_so_itself() -> None:
    look = examined(holder="")
    by_hand = Event("examined", look.at, {**look.data, "collects": False})
    known = Event("examined", look.at, {**examined().data, "collects": False})
    expected = [(look, 40, NAMED), (known, 40, NAMED), (by_hand, 40, SUSPECTED), (by_hand, 80, NAMED)]
    for event, seconds, confidence in expected:
        finding = find_host(growing(seconds, epochs=False, events=[event]))
        assert finding is not None and finding.confidence == confidence


def test_a_list_of_numbers_beside_it_is_not_the_leak() -> None:
    finding = find_host(growing(40, events=[examined(bytes=640)]))
    assert finding is not None and "train.kept" not in finding.evidence[0].text


def test_a_function_compiled_again_and_again_is_named_without_a_look_inside() -> None:
    compiled = [Event("train.compiled", START + i, {"what": "train_step"}) for i in range(1, 30)]
    finding = find_host(growing(events=compiled))
    assert finding is not None and finding.confidence == NAMED
    assert "train_step was compiled again 28 times" in finding.evidence[0].text


def test_gpu_memory_too() -> None:
    window = growing(events=[examined(kind="graph")], level="train__allocated_bytes")
    finding = find_gpu(window)
    assert finding is not None and finding.cause == "gpu-memory-leak"
    assert find_host(window) is None


def test_a_leak_explains_the_kill_it_ended_in() -> None:
    window = growing(40, events=[examined(kind="graph"), kernel(KILLED)], code=137, signal=9)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "host-memory-leak"
    assert any("kernel log" in item.text for item in answer.cause.evidence)
    assert [cause.id for cause in answer.also] == ["container-memory-limit"]


def test_a_leak_explains_no_bug() -> None:
    words = {
        "stderr": b'Traceback (most recent call last):\n  File "/a/train.py", line 3, in <module>\n    x\nKeyError: 1\n'
    }
    window = growing(40, events=[examined(kind="graph")], code=1, output=words)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "unhandled-exception"


def test_growth_until_the_kill_is_its_reason_though_nobody_knows_the_holder() -> None:
    window = growing(40, events=[kernel(KILLED)], code=137, signal=9, cgroup__memory_limit_bytes=[900 * MIB] * 40)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "host-memory-leak" and answer.cause.confidence < NAMED


def test_what_only_helpers_hold_is_no_leak_by_its_slope() -> None:
    """Each loader worker fills a cache of its own in the first epoch."""
    limit = {"cgroup__memory_limit_bytes": [900 * MIB] * 40}
    window = growing(40, events=[kernel(KILLED)], level="job__rss_bytes", code=137, signal=9, **limit)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_a_little_growth_does_not_hide_the_jump_to_the_limit() -> None:
    window = growing(40, events=[kernel(KILLED)], code=137, signal=9, cgroup__memory_limit_bytes=[4000 * MIB] * 40)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_a_leak_of_hundreds_of_megabytes_a_second_is_seen_though_it_lasts_half_a_second() -> None:
    at = [START + 0.03 * i for i in range(14)]
    steps = [6.0 * i for i in range(14)]
    series = {
        "train.rss_bytes": [
            Sample("train.rss_bytes", 500 * MIB + 4 * MIB * s, t, step=int(s)) for s, t in zip(steps, at, strict=True)
        ],
        "train.steps_count": [Sample("train.steps_count", steps[-1], at[-1])],
        "cgroup.memory_limit_bytes": [Sample("cgroup.memory_limit_bytes", 820 * MIB, START)],
    }
    window = Window(story(137, 9, events=[kernel(KILLED)]).events(), series)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "host-memory-leak"


def test_what_was_named_while_it_ran_is_not_forgotten() -> None:
    seen = (Evidence("memory grows 2 MiB a step", "telemetry", START + 10),)
    found = Finding("host-memory-leak", NAMED, seen, {Detail.HOLDER: "Trainer.averages"}, headline="Leak")
    window = story(137, 9, events=[kernel(KILLED)])
    answer = diagnose(window, find_endings(window), [found])
    assert answer.cause is not None and answer.cause.title == "Leak"
    assert any("Trainer.averages" in remedy.how for remedy in answer.cause.remedies)


def test_growth_over_many_short_fits_has_outlived_an_epoch() -> None:
    """A search over models: the epochs begin at zero with each fit."""
    seconds = range(40)
    series: dict[str, list[float | None]] = {
        "train__rss_bytes": [500 * MIB + 10 * MIB * second for second in seconds],
        "train__rss_bytes_step_count": [5.0 * second for second in seconds],
        "train__steps_count": [5.0 * second for second in seconds],
        "train__epoch_count": [float(second // 4 % 2) for second in seconds],
    }
    examined_in_vain = Event("examined", START + 20, {"steps": 20, "growing": []})
    finding = find_host(story(None, None, events=[examined_in_vain], **series))
    assert finding is not None and finding.confidence == NAMED
    assert finding.evidence[-1].text == "it went on growing in a later epoch"


def test_memory_set_aside_before_that_is_being_filled_is_no_leak() -> None:
    flat = {"train__kept_bytes": [500 * MIB] * 90, "train__kept_bytes_step_count": [5.0 * i for i in range(90)]}
    looked = Event("examined", START + 20, {"steps": 20, "growing": []})
    filling = find_host(growing(90, epochs=False, events=[looked], **flat))
    assert filling is not None and filling.confidence < NAMED
    rising = {**flat, "train__kept_bytes": [500 * MIB + 9 * MIB * i for i in range(90)]}
    leaking = find_host(growing(90, epochs=False, events=[looked], **rising))
    assert leaking is not None and leaking.confidence >= NAMED


def test_a_kill_while_a_buffer_was_filled_is_put_on_the_limit() -> None:
    flat = {"train__kept_bytes": [500 * MIB] * 40, "train__kept_bytes_step_count": [5.0 * i for i in range(40)]}
    limit = {"cgroup__memory_limit_bytes": [900 * MIB] * 40}
    window = growing(40, events=[kernel(KILLED)], code=137, signal=9, **flat, **limit)
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_what_the_trainer_does_not_keep_is_not_put_on_its_helpers() -> None:
    """The job as a whole grows by the file that the trainer has mapped."""
    mapped = {"train__not_kept_bytes": [10 * MIB * i for i in range(90)]}
    assert find_host(growing(90, epochs=False, level="job__rss_bytes", **mapped)) is None
    assert find_host(growing(90, epochs=False, level="job__rss_bytes")) is not None


def test_what_a_look_inside_found_before_the_growth_began_does_not_explain_it() -> None:
    """A cache was filled, and looked at, long before the stretch that grows now."""
    flat, rising = [500 * MIB] * 100, [500 * MIB + 3 * MIB * i for i in range(60)]
    steps = [5.0 * i for i in range(160)]
    series = {
        "train__rss_bytes": [*flat, *rising],
        "train__rss_bytes_step_count": steps,
        "train__steps_count": steps,
        "train__epoch_count": [None] * 160,
    }
    early = examined(bytes=100 * MIB)
    found = find_host(story(events=[early], **series))
    assert found is not None and found.growth and found.growth.unexplained and found.confidence < NAMED
    late = Event("examined", START + 150, early.data)
    found = find_host(story(events=[late], **series))
    assert found is not None and found.confidence >= NAMED
