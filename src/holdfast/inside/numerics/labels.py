"""What labels of a batch look like, from plain numbers: frameworks count, this names."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence


def classes(labels: Sequence[int]) -> List[Any]:
    """[distinct labels, share of the most common, rows, id of the most common]."""
    counts: Dict[int, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    if not counts:
        return []
    common = max(counts, key=lambda label: counts[label])
    return [len(counts), round(counts[common] / len(labels), 4), len(labels), common]
