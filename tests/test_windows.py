"""One builder of windows: bounded space, what was declared, and nothing that was not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.vocabulary import Event, Output, Sample, Window
from holdfast.windows import (
    FIRST_EVENTS,
    LATEST,
    LATEST_EVENTS,
    OUTPUT_BYTES,
    DeclaredWindow,
    Reads,
    UndeclaredRead,
    WindowBuilder,
    reads,
)

DECLARED = Reads(latest=("x", "gpu*.used_bytes"), course=("rss_bytes",), events=("phase",), output=True)


def test_a_long_course_keeps_its_beginning_its_end_and_an_even_choice_between() -> None:
    builder = WindowBuilder(DECLARED)
    for i in range(20_000):
        builder.take([Sample("rss_bytes", i, i, step=i), Sample("x", i, i)])
    window = builder.window()
    course = [sample.at for sample in window.series("rss_bytes")]
    assert course[0] == 0 and course[-LATEST:] == list(range(20_000 - LATEST, 20_000))
    assert len(course) <= 2 * LATEST + 3
    older = course[: -LATEST - 1]  # the last before them is the highest of those that passed
    assert len({after - before for before, after in pairwise(older)}) == 1
    assert course == [sample.step for sample in window.series("rss_bytes")]
    assert len(window.series("x")) == LATEST


def test_a_course_keeps_its_extremes_in_their_place() -> None:
    builder = WindowBuilder(DECLARED)
    values = [100.0] * 5000
    values[777], values[2345], values[60] = 900.0, 1.0, float("nan")
    builder.take(Sample("rss_bytes", value, at) for at, value in enumerate(values))
    course = builder.window().series("rss_bytes")
    assert [(sample.at, sample.value) for sample in course if sample.value in (900.0, 1.0)] == [
        (777, 900.0),
        (2345, 1.0),
    ]
    assert [sample.at for sample in course] == sorted(sample.at for sample in course)


def test_what_nobody_declared_is_not_kept() -> None:
    builder = WindowBuilder(DECLARED)
    builder.take(
        [Sample("y", 1.0, 1.0), Event("phase", 1.0), Event("process.gone", 2.0), Sample("gpu7.used_bytes", 1, 1)]
    )
    window = builder.window()
    assert [event.kind for event in window.events()] == ["phase"]
    assert window.names() == ["gpu7.used_bytes"]
    assert WindowBuilder(Reads(events=("phase",))).window().streams() == []


def test_of_a_kind_of_event_the_first_and_the_latest_are_kept() -> None:
    builder = WindowBuilder(DECLARED)
    builder.take(Event("phase", i) for i in range(5000))
    kept = [event.at for event in builder.window().events("phase")]
    assert kept == [*range(FIRST_EVENTS), *range(5000 - LATEST_EVENTS, 5000)]


def test_the_end_of_the_output_is_kept() -> None:
    builder = WindowBuilder(DECLARED)
    for i in range(100):
        builder.take([Output("stderr", i, bytes([65 + i % 26]) * 10_000)])
    kept = builder.window().output("stderr")
    assert len(kept) == OUTPUT_BYTES and kept.endswith(b"V" * 10_000)


def test_the_next_attempt_begins_with_what_lasts_and_nothing_else() -> None:
    builder = WindowBuilder(DECLARED | Reads(events=("machine",)))
    builder.take([Event("machine", 1.0), Event("phase", 2.0), Sample("x", 1.0, 2.0), Output("stdout", 2.0, b"hi")])
    builder.begin_again()
    window = builder.window()
    assert [event.kind for event in window.events()] == ["machine"] and window.names() == [] == window.streams()


def test_a_part_of_the_readers_gets_a_window_of_what_they_read() -> None:
    builder = WindowBuilder(DECLARED)
    builder.take(
        [Sample("x", 1.0, 1.0), Sample("rss_bytes", 1.0, 1.0), Event("phase", 1.0), Output("stdout", 1.0, b"hi")]
    )
    window = builder.window(Reads(latest=("x",)))
    assert (window.names(), window.events(), window.streams()) == (["x"], [], [])


@pytest.mark.parametrize(
    "read",
    [
        lambda window: window.series("other"), lambda window: window.last("other"), lambda window: window.value("other"),
        lambda window: window.rise("other"), lambda window: window.names("cpu", ".used_bytes"),
        lambda window: window.names(), lambda window: window.event("other"), lambda window: window.events("other"),
        lambda window: window.events("phase", "other"), lambda window: window.events(),
    ],
)  # fmt: skip
def test_what_was_not_declared_cannot_be_read(read: object) -> None:
    assert callable(read)
    with pytest.raises(UndeclaredRead):
        read(DeclaredWindow(Window(), DECLARED))


def test_output_is_declared_too() -> None:
    for read in (lambda window: window.output("stderr"), lambda window: window.streams()):
        with pytest.raises(UndeclaredRead):
            read(DeclaredWindow(Window(), Reads(latest=("x",))))


def test_a_reader_sees_as_far_back_as_it_declared_whoever_else_reads_further() -> None:
    @reads(latest=["rss_bytes"])
    def latest(window: Window) -> int:
        return len(window.series("rss_bytes"))

    @reads(latest.reads, course=["rss_bytes"])
    def course(window: Window) -> int:
        return len(window.series("rss_bytes"))

    @reads(course=["other"])
    def calls_another(window: Window) -> int:
        return latest(window)

    builder = WindowBuilder(course.reads)
    builder.take(Sample("rss_bytes", 1.0, i) for i in range(2 * LATEST))
    assert (latest(builder.window()), course(builder.window())) == (LATEST, 2 * LATEST)
    with pytest.raises(UndeclaredRead):
        calls_another(builder.window())
