from __future__ import annotations

import math
from pathlib import Path

import pytest
from journal_making import row, small_journal

from holdfast.journal import Follower, Journal, JournalWriter, NewerJournal
from holdfast.journal.format import HEADER_BYTES, pack_header, unpack_header
from holdfast.vocabulary import Event, Output, Sample


def test_what_was_written_is_read(directory: Path) -> None:
    told = small_journal(directory)
    journal = Journal(directory)
    assert list(journal.samples()) == [one for one in told if isinstance(one, Sample)]
    assert journal.events() == [one for one in told if isinstance(one, Event)]
    assert journal.output() == {"stdout": b"line 0\nline 1\nline 2\nline 3\n"}
    assert journal.damage == []


def test_a_missing_reading_is_none_with_the_reason_of_its_time(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher")
    reasons = ["no such file", "no such file", "", "permission denied"]
    for at, reason in enumerate(reasons):
        writer.samples(float(at), [Sample("gpu.used_bytes", None, float(at), reason)])
    found = list(Journal(directory).samples())
    assert [sample.value for sample in found] == [None] * 4
    assert [sample.reason for sample in found] == reasons


def test_nan_and_infinity_are_values_and_not_missing(directory: Path) -> None:
    JournalWriter(directory, "watcher").samples(1.0, row(1.0, [math.nan, math.inf, -math.inf, None], "gone"))
    nan, up, down, missing = Journal(directory).samples()
    assert nan.value is not None and math.isnan(nan.value)
    assert (up.value, down.value) == (math.inf, -math.inf)
    assert missing == Sample("signal.3_ratio", None, 1.0, "gone")


def test_a_number_too_large_for_a_float_is_missing_and_says_so(directory: Path) -> None:
    JournalWriter(directory, "watcher").samples(1.0, [Sample("a_count", 10**400, 1.0), Sample("b_count", 7, 1.0)])
    large, small = Journal(directory).samples()
    assert large.value is None and "not a number" in large.reason
    assert small.value == 7.0


def test_the_set_of_names_may_change_from_row_to_row(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher")
    told = [Sample(f"name{i % width}_count", float(i), float(i)) for width in (1, 3, 2) for i in range(4)]
    for sample in told:
        writer.samples(sample.at, [sample])
    assert list(Journal(directory).samples()) == told


def test_each_segment_stands_alone(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher", segment_bytes=400)
    for at in range(50):
        writer.samples(float(at), row(at, [1.0, None], "asleep"))
    writer.close()
    segments = sorted(directory.iterdir())
    assert len(segments) > 3
    for segment in segments[:-1]:
        segment.unlink()
    found = list(Journal(directory).samples())
    assert found[-2:] == row(49.0, [1.0, None], "asleep")


def test_samples_can_be_asked_for_by_name_and_time(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher")
    for at in range(10):
        writer.samples(float(at), row(at, [float(at), 0.0]))
    found = list(Journal(directory).samples(["signal.0_ratio"], since=7.0))
    assert [sample.value for sample in found] == [7.0, 8.0, 9.0]


def test_events_of_all_streams_come_by_time_and_by_kind(directory: Path) -> None:
    watcher, relay = JournalWriter(directory, "watcher"), JournalWriter(directory, "re-lay")
    watcher.event(Event("b", 2.0))
    relay.event(Event("a", 1.0, {"x": [1, {"y": None}]}))
    watcher.event(Event("c", 3.0))
    journal = Journal(directory)
    assert [event.kind for event in journal.events()] == ["a", "b", "c"]
    assert journal.events("a", "c") == [Event("a", 1.0, {"x": [1, {"y": None}]}), Event("c", 3.0)]


def test_an_event_that_is_no_json_still_leaves_a_trace(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher")
    loop: dict[str, object] = {}
    loop["self"] = loop
    writer.event(Event("odd", 1.0, {"path": Path("/x"), "bad": "\udcff"}))
    writer.event(Event("loop", 2.0, loop))
    writer.event(Event("large", 3.0, {"text": "x" * (3 << 20)}))
    odd, circular, large = Journal(directory).events()
    assert odd.data == {"path": "/x", "bad": "\udcff"}
    assert "not_kept" in circular.data
    assert "cut_short" in large.data


def test_output_is_the_tail_over_all_streams_in_time_order(directory: Path) -> None:
    first, second = JournalWriter(directory, "output"), JournalWriter(directory, "relay")
    first.output(Output("stdout", 1.0, b"one "))
    second.output(Output("stdout", 2.0, b"two ", skipped_bytes=9))
    first.output(Output("stdout", 3.0, b"three"))
    first.output(Output("stderr", 3.0, b"\x00\xff"))
    assert Journal(directory).output() == {"stdout": b"one two three", "stderr": b"\x00\xff"}
    assert Journal(directory).output(limit_bytes=7)["stdout"] == b"o three"
    assert [one.skipped_bytes for one in Follower(directory).poll() if isinstance(one, Output)] == [0, 9, 0, 0]


def test_a_large_piece_of_output_comes_back_whole(directory: Path) -> None:
    data = bytes(range(256)) * 4096
    JournalWriter(directory, "output").output(Output("terminal", 1.0, data))
    assert Journal(directory).output(limit_bytes=1 << 21) == {"terminal": data}


def test_a_second_writer_of_a_stream_goes_on_where_the_first_stopped(directory: Path) -> None:
    for start in (0, 3):
        writer = JournalWriter(directory, "watcher")
        for at in range(start, start + 3):
            writer.event(Event("tick", float(at)))
        writer.close()
    assert [event.at for event in Journal(directory).events()] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("x")])
def test_no_journal_is_an_empty_one(directory: Path, make: object) -> None:
    make(directory)  # type: ignore[operator]
    journal = Journal(directory)
    assert (list(journal.samples()), journal.events(), journal.output(), journal.damage) == ([], [], {}, [])
    assert Follower(directory).poll() == []


def test_a_newer_journal_is_refused_in_one_line(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_journal(directory)
    segment = directory / "watcher-00000001.seg"
    data = segment.read_bytes()
    header = unpack_header(data, "")
    assert header is not None
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.journal.format.VERSION", 2)
        segment.write_bytes(pack_header(header) + data[HEADER_BYTES:])
    with pytest.raises(NewerJournal) as caught:
        Journal(directory)
    assert caught.value.version == 2
    assert "newer Holdfast" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(NewerJournal):
        Follower(directory).poll()
    writer = JournalWriter(directory, "watcher")
    writer.event(Event("still written", 1.0))
    writer.tend(1e9)
    assert (writer.lost_records, segment.exists()) == (0, True)
