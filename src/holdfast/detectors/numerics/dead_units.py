"""Layers whose units give the same for every row of a batch, so that no gradient passes them, while the loss stays where it is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from holdfast.detectors.numerics.facts import READS, Course, read
from holdfast.detectors.numerics.samples import Units
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    samples: int = 3
    steps: int = 40
    dead: float = 0.9
    saturated: float = 0.9


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    if course.setup is None or course.steps < thresholds.steps or course.learns() is not False:
        return None
    by_layer: defaultdict[str, list[Units]] = defaultdict(list)
    for sample in course.samples:
        for units in sample.units:
            by_layer[units.layer].append(units)
    last = course.setup.last.text("layer")
    for layer, seen in by_layer.items():
        latest = seen[-thresholds.samples :]
        if layer == last or (len(latest) < thresholds.samples and not _no_gradient(course, layer, thresholds)):
            continue
        dead, saturated = min(units.dead for units in latest), min(units.saturated for units in latest)
        if dead < thresholds.dead and saturated < thresholds.saturated:
            continue
        kind = latest[-1].activation or "activation"
        what = f"give the same for every row ({kind})" if dead >= thresholds.dead else f"are saturated ({kind})"
        text = f"{max(dead, saturated):.0%} of the units of {layer} {what}, in the last {len(latest)} looks; the loss does not fall"
        return Finding("dead-activations", 0.85, (Evidence(text, "telemetry", course.samples[-1].at, dead),))
    return None


def _no_gradient(course: Course, layer: str, thresholds: Thresholds) -> bool:
    """Hardly any of its weights got one in the latest samples: units are looked at less often."""
    shares = [g.zero_share for s in course.samples for g in s.groups if g.name == layer and g.zero_share is not None]
    return len(shares) >= 2 * thresholds.samples and min(shares[-2 * thresholds.samples :]) >= thresholds.dead
