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
