"""What the job held, as the record has it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.vocabulary import Sample, Window
from holdfast.windows import Reads

HELD = Reads(course=("job.held_bytes", "job.rss_bytes"))


def held_series(window: Window, since: float = float("-inf")) -> Sequence[Sample]:
    """Without mapped files, shared pages counted once; a record that lacks it has the sum of the resident sizes."""
    held = [sample for sample in window.series("job.held_bytes", since) if sample.value is not None]
    return held or [sample for sample in window.series("job.rss_bytes", since) if sample.value is not None]


def most_held(window: Window, since: float = float("-inf")) -> Sample | None:
    return max(held_series(window, since), key=lambda sample: sample.value or 0.0, default=None)
