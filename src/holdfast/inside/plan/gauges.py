"""The most that is held from a moment on: of the process by the kernel's mark, of a card by the framework's allocator."""

from __future__ import annotations

import os
from typing import Callable, List, NamedTuple, Optional

from ..held_memory import file_bytes, held_share_bytes, peak_bytes, reset_peak, status_of_this_process
from ..out_of_memory import give_back


class Card(NamedTuple):
    """Of a framework's allocator, on the card that it trains on."""

    reset: Callable[[], object]
    most_bytes: Callable[[], int]  # since
    room_bytes: Callable[[], Optional[int]]  # that it may take in all


class Gauges:
    def __init__(self, card: Optional[Card] = None) -> None:
        self.card = card
        self.kept = 0  # ours, for the measuring: taken off

    def begin(self) -> bool:
        """False where the kernel's mark cannot be set back."""
        give_back()
        if self.card is not None:
            self.card.reset()
        return reset_peak() is not None

    def host_bytes(self) -> int:
        """Without mapped files: those pages are the page cache's. They are mapped once and stay, so what is mapped now was
        mapped at the peak."""
        most = peak_bytes() or 0
        return max(0, most - (file_bytes(status_of_this_process()) or 0) - self.kept)

    def gpu_bytes(self) -> Optional[int]:
        return self.card.most_bytes() if self.card is not None else None


def held_by_children() -> int:
    """Loader workers, forked: what is theirs alone."""
    total = 0
    for pid in _children():
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += held_share_bytes(file.read()) or 0
        except OSError:
            continue
    return total


def _children() -> List[str]:
    found: List[str] = []
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found += file.read().split()
        except OSError:
            continue
    return found
