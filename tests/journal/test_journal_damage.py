from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_making import row, small_journal

from holdfast.journal import Follower, Journal, JournalWriter
from holdfast.journal.format import EVENT, HEADER_BYTES, Frames, frame
from holdfast.vocabulary import Event, Output, Sample

Told = list[Sample | Event | Output]


def read(directory: Path) -> Told:
    journal = Journal(directory)
    found: Told = [*journal.samples(), *journal.events()]
    output = journal.output().get("stdout", b"")
    return found + [Output("stdout", 0.0, line) for line in output.splitlines()]


def frame_ends(data: bytes) -> list[int]:
    frames = Frames(data, HEADER_BYTES)
    return [frames.offset for _ in frames]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    directory = tmp_path_factory.mktemp("whole")
    small_journal(directory)
    return (directory / "watcher-00000001.seg").read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def put(directory: Path, data: bytes, name: str = "watcher-00000001.seg") -> None:
    (directory / name).write_bytes(data)


def test_a_cut_at_any_byte_yields_everything_before_it(whole: bytes, scratch: Path) -> None:
    ends = frame_ends(whole)
    put(scratch, whole)
    everything = Follower(scratch).poll()
    size_before = -1
    for cut in range(len(whole) + 1):
        put(scratch, whole[:cut])
        found = Follower(scratch).poll()
        assert found == everything[: len(found)]
        assert len(found) >= size_before
        assert len(read(scratch)) == len(found)
        assert Journal(scratch).damage == []
        size_before = len(found)
        if cut in ends:
            assert frame_ends(whole[:cut])[-1] == cut
    assert size_before == len(everything)


def test_a_follower_fed_byte_by_byte_tells_each_record_once(whole: bytes, scratch: Path) -> None:
    put(scratch, whole)
    everything = Follower(scratch).poll()
    follower, found = Follower(scratch), []
    for cut in range(len(whole) + 1):
        put(scratch, whole[:cut])
        found += follower.poll()
    assert found == everything


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_flipped_byte_costs_only_what_follows_it(whole: bytes, scratch: Path, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    put(scratch, whole)
    everything = Follower(scratch).poll()
    put(scratch, whole[:at] + bytes((whole[at] ^ flip,)) + whole[at + 1 :])
    found = Follower(scratch).poll()
    assert found == everything[: len(found)]
    good = [end for end in [0, HEADER_BYTES, *frame_ends(whole)] if end <= at][-1]
    damage = Journal(scratch).damage
    if at < frame_ends(whole)[-2]:  # a length flipped in the very last frame looks like a torn tail
        assert damage
    assert all(f"damaged at byte {good}," in line for line in damage)


@given(garbage=st.binary(max_size=400), keep=st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_garbage_is_survived(whole: bytes, scratch: Path, garbage: bytes, keep: float) -> None:
    put(scratch, whole)
    everything = Follower(scratch).poll()
    put(scratch, whole[: int(len(whole) * keep)] + garbage)
    found = Follower(scratch).poll()
    assert [one for one in everything[: len(found)]] == found[: len(everything)]
    read(scratch)
    assert isinstance(Journal(scratch).damage, list)


def test_a_giant_length_is_damage_and_not_an_allocation(whole: bytes, scratch: Path) -> None:
    put(scratch, whole + b"\x00\x00\x00\x00\xff\xff\xff\xff\x02" + bytes(100))
    assert Journal(scratch).damage == [
        f"watcher-00000001.seg: damaged at byte {len(whole)}, the rest of that segment is not readable"
    ]


def test_damage_in_one_segment_leaves_the_others(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher", segment_bytes=300)
    for at in range(40):
        writer.samples(float(at), row(at, [float(at)]))
    writer.close()
    second = sorted(directory.iterdir())[1]
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 0x40
    second.write_bytes(data)
    journal = Journal(directory)
    found = [sample.at for sample in journal.samples()]
    assert found[-1] == 39.0 and 0.0 in found and 30 < len(found) < 40
    (line,) = journal.damage
    assert line.startswith("watcher-00000002.seg: damaged at byte ")


def test_a_segment_cut_short_is_told_unless_it_is_the_newest(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher", segment_bytes=300)
    for at in range(40):
        writer.samples(float(at), row(at, [float(at)]))
    writer.close()
    first, *_, last = sorted(directory.iterdir())
    last.write_bytes(last.read_bytes()[:-3])
    assert Journal(directory).damage == []
    first.write_bytes(first.read_bytes()[:-3])
    (line,) = Journal(directory).damage
    assert line.startswith("watcher-00000001.seg: cut short at byte ")


def test_the_next_writer_cuts_off_a_torn_tail(directory: Path) -> None:
    small_journal(directory)
    segment = directory / "watcher-00000001.seg"
    segment.write_bytes(segment.read_bytes()[:-3])
    writer = JournalWriter(directory, "watcher")
    writer.event(Event("again", 200.0))
    writer.close()
    journal = Journal(directory)
    assert journal.damage == []
    assert [event.kind for event in journal.events()] == ["step"] * 4 + ["again"]


def test_damaged_segments_are_not_thinned_away(directory: Path) -> None:
    small_journal(directory)
    segment = directory / "watcher-00000001.seg"
    data = bytearray(segment.read_bytes())
    data[-2] ^= 1
    segment.write_bytes(data)
    writer = JournalWriter(directory, "watcher")
    for _ in range(4):
        writer.tend(1e6)
    assert segment.read_bytes() == bytes(data)
    assert len(Journal(directory).damage) == 1


def test_random_bytes_in_a_segment_of_the_right_name_are_no_header(directory: Path) -> None:
    directory.mkdir()
    put(directory, random.Random(1).randbytes(5000))
    (directory / "watcher-0000000x.seg").write_bytes(b"not ours")
    (directory / "notes.txt").write_bytes(b"not ours")
    journal = Journal(directory)
    assert list(journal.samples()) == []
    assert journal.damage == ["watcher-00000001.seg: damaged at byte 0, that segment is not readable"]


def test_a_whole_record_that_cannot_be_decoded_is_not_called_damage(whole: bytes, tmp_path: Path) -> None:
    put(tmp_path, whole + frame(EVENT, b"12345678" + b'{"no": "pair"}'))
    assert Journal(tmp_path).events()[-1].data == {"number": 3}
    (line,) = Journal(tmp_path).damage
    assert (
        f"a whole record at byte {len(whole)} cannot be decoded (ValueError: " in line and "a bug of Holdfast's" in line
    )
