"""Checksums of TFRecord: CRC-32C, masked. Those of records that are alike in length are looked at together.

A checksum is linear: that of A before B is that of A, moved on by the length of B, plus that of B. So the checksum of a whole stretch of records
follows from those that stand in it, and is computed over its bytes at 10 GB/s where a call for each record takes 0.3 µs.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import google_crc32c
import numpy as np

from holdfast.data.formats.contract import Array

DELTA = 0xA282EAD8
HEAD_BYTES, TAIL_BYTES = 12, 4  # a length with its checksum, and the checksum of the record


def masked_crc(content: bytes) -> int:
    crc = google_crc32c.value(content)
    return int(((crc >> 15 | crc << 17) + DELTA) & 0xFFFFFFFF)


def is_right(content: bytes, stored: bytes) -> bool:
    return stored == struct.pack("<I", masked_crc(content))


def are_right(frames: Array) -> bool:
    """Of records × bytes, each with its length before and its checksum behind it; the lengths are the same and were looked at."""
    size = frames.shape[1]
    stored = np.ascontiguousarray(frames[:, -TAIL_BYTES:]).view("<u4").ravel()
    rotated = stored - np.uint32(DELTA)
    of_data = rotated >> np.uint32(17) | rotated << np.uint32(15)
    of_head = np.array([google_crc32c.value(frames[0, :HEAD_BYTES].tobytes())], np.uint32)
    sums = _moved(_tables(TAIL_BYTES, 0), of_data) ^ _of_words(stored)
    sums ^= _moved(_tables(size - HEAD_BYTES, 0), of_head)
    doublings = 0
    while len(sums) > 1:
        if len(sums) % 2:
            sums = np.concatenate([np.zeros(1, np.uint32), sums])  # nothing, moved on, is nothing
        sums = _moved(_tables(size, doublings), sums[0::2]) ^ sums[1::2]
        doublings += 1
    return bool(sums[0] == google_crc32c.value(frames.tobytes()))


@lru_cache(64)
def _tables(length: int, doublings: int) -> Array:
    """Of each value of each byte of a checksum: what it becomes `length << doublings` bytes further on."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    if doublings:
        half = _tables(length, doublings - 1)
        images = _moved(half, _moved(half, bits))
    else:
        zeros = bytes(length)
        none = google_crc32c.value(zeros)
        images = np.array([google_crc32c.extend(int(bit), zeros) ^ none for bit in bits], np.uint32)
    values = np.arange(256)[:, None] >> np.arange(8) & 1
    chosen = np.where(values[None].astype(bool), images.reshape(4, 1, 8), np.uint32(0))
    return np.asarray(np.bitwise_xor.reduce(chosen, axis=2))


def _moved(tables: Array, sums: Array) -> Array:
    octets = np.ascontiguousarray(sums, "<u4").view(np.uint8).reshape(-1, 4)
    moved: Array = tables[0][octets[:, 0]]
    for number in (1, 2, 3):
        moved ^= tables[number][octets[:, number]]
    return moved


def _of_words(words: Array) -> Array:
    """The checksum of four bytes is that of nothing, moved on, with the bytes as if they were a checksum."""
    start = np.uint32(google_crc32c.value(bytes(4)))
    return _moved(_tables(TAIL_BYTES, 0), words) ^ start
