"""What was counted by name over a whole set: classes, sizes and modes of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.data.audit.report import Finding

LEAST_ROWS = 20
IMBALANCED = 50.0
MAJORITY = 0.95


def imbalance(counts: dict[str, int]) -> str:
    """Nothing where the classes are near enough to each other."""
    if len(counts) < 2 or sum(counts.values()) < LEAST_ROWS or len(counts) > 0.2 * sum(counts.values()):
        return ""
    most, least = max(counts.items(), key=lambda item: item[1]), min(counts.items(), key=lambda item: item[1])
    share = most[1] / sum(counts.values())
    if most[1] < IMBALANCED * least[1] and share < MAJORITY:
        return ""
    return f"class {most[0]} has {most[1]:,} rows ({share:.1%}), class {least[0]} has {least[1]:,}"


def judged_tallies(path: str, tallies: dict[str, Counter[str]]) -> Iterator[Finding]:
    if said := imbalance(dict(tallies.get("class", {}))):
        yield Finding("imbalance", path, "class", min(tallies["class"].values()), (), False, said)
    for name, id in (("mode", "dtype"), ("size", "shape")):
        yield from _odd_ones(path, id, name, tallies.get(name, Counter()))


def _odd_ones(path: str, id: str, name: str, counts: Counter[str]) -> Iterator[Finding]:
    """A few that differ from all others. Photographs of all sizes are no mistake: loaders bring them to one."""
    if len(counts) < 2:
        return
    (usual, number), *others = counts.most_common()
    odd = sum(count for _, count in others)
    if name == "mode" or number >= MAJORITY * (number + odd):
        shown = ", ".join(f"{value} ({count:,})" for value, count in others[:5])
        said = f"images of another {name} than {usual} ({number:,}): {shown}"
        yield Finding(id, path, name, odd, (), False, said)
