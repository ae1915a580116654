"""What a file or record is, by its bytes."""

from __future__ import annotations

import hashlib


def content_hash(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
