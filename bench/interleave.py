"""Two ways of doing the same, measured in turn, so that a busy minute of the machine hits both."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Comparison:
    bare: list[float]
    ours: list[float]

    @property
    def ratios(self) -> list[float]:
        return [ours / bare for bare, ours in zip(self.bare, self.ours, strict=True)]

    def __str__(self) -> str:
        low, _, high = quantiles(self.ratios, n=4)
        return (
            f"bare {median(self.bare):.4g}, with Holdfast {median(self.ours):.4g}, "
            f"ratio {median(self.ratios):.4f} (middle half {low:.4f} to {high:.4f}, {len(self.ratios)} rounds)"
        )


def interleave(bare: Callable[[], float], ours: Callable[[], float], rounds: int, seed: int = 0) -> Comparison:
    chance = random.Random(seed)
    results: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        order = [(0, bare), (1, ours)]
        chance.shuffle(order)
        for which, measure in order:
            results[which].append(measure())
    return Comparison(*results)
