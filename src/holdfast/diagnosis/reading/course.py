"""What the figures of the loss say when one of them is no number any more."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median

from holdfast.diagnosis.plain_text import Line
from holdfast.vocabulary import Evidence, Finding

LOSS = re.compile(
    r"(?<![\w])(?:train_|training_|total_)?[Ll]oss['\"]?\s{0,3}[:=]?\s{0,3}(?:tensor\()?(?P<value>-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|nan|inf))(?![\w.])",
    re.IGNORECASE,
)
GROWN = 10.0  # times, from where it was to where it broke
FEW = 4


def of_the_loss(lines: Sequence[Line]) -> list[Finding]:
    values: list[tuple[float, Line]] = []
    for line in lines:
        if "oss" in line.text and (found := LOSS.search(line.text)):
            values.append((float(found["value"]), line))
    broken = next((i for i, (value, _) in enumerate(values) if not math.isfinite(value)), None)
    if broken is None:
        return []
    line = values[broken][1]
    seen = [value for value, _ in values[:broken]]
    first_nan = Evidence(
        f"line {line.number}: the loss is {values[broken][0]}: {line.text.strip()[:120]}", "log", line.at
    )
    if len(seen) >= FEW:
        start, last = median(abs(value) for value in seen[: max(2, len(seen) // 3)]), abs(seen[-1])
        if start > 0 and last > GROWN * start:
            grew = Evidence(f"it had grown from {start:.4g} to {last:.4g} before", "log", line.at)
            return [
                Finding("learning-rate-too-high", 0.66, (grew, first_nan)),
                Finding("exploding-gradients", 0.45, (grew, first_nan)),
            ]
        steady = Evidence(f"it was finite and steady before ({seen[-1]:.4g})", "log", line.at)
        return [
            Finding("invalid-math", 0.42, (first_nan, steady)),
            Finding("bad-input-values", 0.42, (first_nan, steady)),
            Finding("exploding-gradients", 0.4, (first_nan, steady)),
        ]
    return [
        Finding("bad-input-values", 0.45, (first_nan,)),
        Finding("learning-rate-too-high", 0.43, (first_nan,)),
        Finding("exploding-gradients", 0.4, (first_nan,)),
    ]
