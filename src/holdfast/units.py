"""Amounts and durations as a person writes them."""

from __future__ import annotations


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
