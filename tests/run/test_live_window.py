"""The watcher remembers the latest of everything and the whole course of a few signals, in bounded space."""

from __future__ import annotations

from itertools import pairwise

from holdfast.supervisor.live_window import REMEMBERED, LiveWindow
from holdfast.vocabulary import Event, Sample


def test_a_long_course_keeps_its_beginning_its_end_and_an_even_choice_between() -> None:
    recall = LiveWindow()
    for i in range(20_000):
        recall.take([Sample("train.rss_bytes", i, i, step=i), Sample("x", i, i)])
    window = recall.window()
    course = [sample.at for sample in window.series("train.rss_bytes")]
    assert course[0] == 0 and course[-REMEMBERED:] == list(range(20_000 - REMEMBERED, 20_000))
    assert len(course) <= 2 * REMEMBERED + 1
    older = course[:-REMEMBERED]
    assert len({after - before for before, after in pairwise(older)}) == 1
    assert course == [sample.step for sample in window.series("train.rss_bytes")]
    assert len(window.series("x")) == REMEMBERED


def test_events_that_detectors_ask_for_are_kept() -> None:
    recall = LiveWindow()
    recall.take([Event("train.phase", 1.0), Event("process.gone", 2.0), Event("examined", 3.0)])
    assert [event.kind for event in recall.window().events()] == ["train.phase", "examined"]
