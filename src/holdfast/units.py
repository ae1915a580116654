"""Amounts and durations as a person writes them."""

from __future__ import annotations

import re

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)


def bytes_of(text: str) -> int:
    match = SIZE.fullmatch(text.strip())
    if not match or not (number := float(match[1])):
        raise ValueError(f"{text!r} is no size; write it as 12G, 800M or 1.5GiB")
    if number > 1e9:
        raise ValueError(f"{text[:20]!r}… is more memory than any machine has")
    return int(number * 1024 ** " kmgt".index(match[2].lower() or " "))


def amount(value: float, unit: str) -> str:
    if unit != "bytes":
        return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= size:
            return f"{value / size:.3g} {name}" if value < 100 * size else f"{value / size:.0f} {name}"
    return f"{value:.0f} B"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
