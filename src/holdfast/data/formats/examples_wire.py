"""tf.train.Example as it stands on the wire: the few fields it has, read without TensorFlow or a protocol compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from holdfast.data.formats.contract import Array


class Damaged(ValueError):
    """The bytes are no message of this kind."""


class Feature(NamedTuple):
    kind: str  # "float32", "int64" or "bytes"
    values: Array | list[bytes]


Buffer = bytes | memoryview


def features_of(record: Buffer) -> dict[str, Feature]:
    """Of an Example; of a SequenceExample its context. Lists of floats are views of the record where that can be."""
    found: dict[str, Feature] = {}
    for number, inner in _messages(record):
        if number == 1:  # features
            for entry_number, entry in _messages(inner):
                if entry_number == 1:
                    name, feature = _entry(entry)
                    found[name] = feature
    return found


def _entry(entry: Buffer) -> tuple[str, Feature]:
    name, feature = "", Feature("bytes", [])
    for number, inner in _messages(entry):
        if number == 1:
            name = bytes(inner).decode("utf-8", "replace")
        elif number == 2:
            feature = _feature(inner)
    return name, feature


def _feature(message: Buffer) -> Feature:
    for number, inner in _messages(message):
        if number == 1:
            return Feature("bytes", [bytes(content) for field, content in _messages(inner) if field == 1])
        if number == 2:
            return Feature("float32", _floats(inner))
        if number == 3:
            return Feature("int64", _integers(inner))
    return Feature("bytes", [])


def _floats(message: Buffer) -> Array:
    pieces = []
    for number, wire, content in _fields(message):
        if number == 1 and wire in (2, 5):
            if len(content) % 4:
                raise Damaged("a list of floats has a broken length")
            pieces.append(np.frombuffer(content, "<f4"))
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, np.float32)


def _integers(message: Buffer) -> Array:
    pieces = []
    for number, wire, content in _fields(message):
        if (number == 1 and wire == 2) or (number == 1 and wire == 0):
            pieces.append(_varints(content))
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def _varints(content: Buffer) -> Array:
    """Seven bits a byte, the last byte of each below 128."""
    octets = np.frombuffer(content, np.uint8)
    if not len(octets):
        return np.empty(0, np.int64)
    if octets.max() < 128:
        return octets.astype(np.int64)
    ends = np.flatnonzero(octets < 128)
    if not len(ends) or ends[-1] != len(octets) - 1:
        raise Damaged("an integer has no end")
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (ends - starts).max() > 9:
        raise Damaged("an integer is too long")
    shifts = (np.arange(len(octets)) - np.repeat(starts, ends - starts + 1)).astype(np.uint64) * np.uint64(7)
    parts = (octets & 127).astype(np.uint64) << shifts
    return np.add.reduceat(parts, starts).view(np.int64)


class Span(NamedTuple):
    """Where the packed values of a feature lie in a record."""

    name: str
    kind: str
    begin: int
    end: int


def spans_of(record: bytes) -> list[Span] | None:
    """Of an Example whose numbers are packed, as TensorFlow writes them; None where one is not."""
    whole = memoryview(record)
    found: list[Span] = []
    for number, begin, end in _places(whole, 0, len(record)):
        for entry_number, at, stop in _places(whole, begin, end) if number == 1 else ():
            if entry_number != 1:
                return None
            parts = {key: (first, last) for key, first, last in _places(whole, at, stop)}
            kinds = list(_places(whole, *parts[2])) if parts.keys() == {1, 2} else []
            values = list(_places(whole, *kinds[0][1:])) if len(kinds) == 1 and kinds[0][0] in (1, 2, 3) else []
            if not values or (kinds[0][0] != 1 and len(values) != 1):
                return None
            name = bytes(whole[slice(*parts[1])]).decode("utf-8", "replace")
            found.append(Span(name, ("bytes", "float32", "int64")[kinds[0][0] - 1], values[0][1], values[-1][2]))
    return found


def _places(message: memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of each field that has a length."""
    place = begin
    while place < end:
        key, place = _varint(message, place)
        if key & 7 != 2:
            raise Damaged("a field of another kind")
        length, place = _varint(message, place)
        if place + length > end:
            raise Damaged("a field is longer than its message")
        yield key >> 3, place, place + length
        place += length


def alike(rows: Array) -> dict[str, Array] | None:
    """Records × values of each feature of numbers, of records × bytes that differ in their values alone: taken from all of them at once.
    None where they do not."""
    try:
        spans = spans_of(rows[0].tobytes())
    except Damaged:
        return None
    if spans is None or len({span.name for span in spans}) < len(spans):
        return None
    is_form = np.ones(rows.shape[1], bool)
    for span in spans:
        if span.kind != "bytes":
            is_form[span.begin : span.end] = False
    if not (rows[:, is_form] == rows[0, is_form]).all():
        return None
    found: dict[str, Array] = {}
    for span in spans:
        values = np.ascontiguousarray(rows[:, span.begin : span.end])
        if span.kind == "float32" and values.shape[1] % 4 == 0:
            found[span.name] = values.view("<f4")
        elif span.kind == "int64":
            ends = np.unique((values < 128).sum(axis=1))
            if len(ends) != 1 or not (values[:, -1:] < 128).all():
                return None
            found[span.name] = _varints(values.tobytes()).reshape(len(rows), -1)
        elif span.kind != "bytes":
            return None
    return found


def _messages(message: Buffer) -> Iterator[tuple[int, Buffer]]:
    for number, wire, content in _fields(message):
        if wire == 2:
            yield number, content


def _fields(message: Buffer) -> Iterator[tuple[int, int, Buffer]]:
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        wire, number = key & 7, key >> 3
        if wire == 0:
            _, end = _varint(message, place)
        elif wire == 2:
            length, place = _varint(message, place)
            end = place + length
        elif wire in (1, 5):
            end = place + (8 if wire == 1 else 4)
        else:
            raise Damaged(f"wire type {wire} is none that is in use")
        if end > len(message):
            raise Damaged("a field is longer than its message")
        yield number, wire, message[place:end]
        place = end


def _varint(message: Buffer, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(message) or shift > 63:
            raise Damaged("a number has no end")
        octet = message[place]
        value |= (octet & 127) << shift
        place += 1
        if octet < 128:
            return value, place
        shift += 7
