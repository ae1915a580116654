"""Records of TFRecord in stretches of one length: each is given, and a flipped bit anywhere ends them at its record."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.data.formats import record_frames
from holdfast.data.formats.checksums import are_right
from holdfast.data.formats.contract import Unreadable
from holdfast.data.formats.record_frames import framed, records
from tests.data_audit.written import framed as written_frame

# Lengths as files have them: long stretches of one, and others between.
LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=5)


def contents(lengths: list[tuple[int, int]]) -> list[bytes]:
    chance = np.random.default_rng(len(lengths))
    return [chance.bytes(length) for length, count in lengths for _ in range(count)]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_frames, "BLOCK_BYTES", 700)


@settings(max_examples=100)
@given(LENGTHS, st.data())
def test_all_are_given_and_a_flipped_bit_ends_them_at_its_record(
    lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    wanted = contents(lengths)
    file = bytearray(b"".join(map(written_frame, wanted)))
    assert list(records(io.BytesIO(file))) == wanted
    bit = data.draw(st.integers(0, 8 * len(file) - 1))
    file[bit // 8] ^= 1 << bit % 8
    found = []
    with pytest.raises(Unreadable) as error:
        for record in records(io.BytesIO(file)):
            found.append(record)
    assert found == wanted[: len(found)]
    begin = sum(16 + len(record) for record in found)
    assert begin <= bit // 8 < begin + 16 + len(wanted[len(found)])
    assert error.value.offset == begin


@given(st.integers(0, 60), st.integers(1, 70), st.integers(0, 2**32 - 1))
@example(48, 64, 0)
def test_checksums_are_looked_at_together(length: int, count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    frames = np.frombuffer(b"".join(written_frame(chance.bytes(length)) for _ in range(count)), np.uint8)
    frames = frames.reshape(count, -1).copy()
    assert are_right(frames)
    if length:
        frames[chance.integers(count), 12 + chance.integers(length)] ^= 1 << int(chance.integers(8))
        assert not are_right(frames)


def test_two_records_whose_contents_changed_places_are_noticed() -> None:
    frames = np.frombuffer(b"".join(written_frame(bytes([number] * 8)) for number in range(20)), np.uint8)
    frames = frames.reshape(20, -1).copy()
    frames[[3, 11], 12:20] = frames[[11, 3], 12:20]
    assert not are_right(frames)


def test_a_file_of_one_length_is_one_stretch_and_a_mixed_one_costs_no_more_than_its_records() -> None:
    alike = b"".join(written_frame(bytes(20)) for _ in range(19))
    (frames,) = framed(io.BytesIO(alike))
    assert [stretch.records for stretch in frames.stretches] == [8, 11]
    mixed = b"".join(written_frame(bytes(number % 2)) for number in range(30))
    (frames,) = framed(io.BytesIO(mixed))
    assert [stretch.records for stretch in frames.stretches] == [1] * 30
