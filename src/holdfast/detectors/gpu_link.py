"""A card that is connected by fewer PCIe lanes, or works over an older generation, than it and its slot can.

An idle card lowers the generation of its link and raises it again for work, so only readings of a card at work count. The driver's
"most" is what card and slot can do together: a card with sixteen lanes in a slot with eight is whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.vocabulary import Evidence, Finding, Sample, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    readings: int = 6  # one in five seconds
    at_work_percent: float = 20.0


@reads(
    course=["gpu*.link_lanes", "gpu*.link_generation", "gpu*.utilisation_percent"],
    events=["gpu.found"],
)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    for event in window.events("gpu.found"):
        number = event.data.get("index")
        sides = (
            ("link_lanes", event.data.get("link_most_lanes"), "by {now:.0f} of {most:.0f} PCIe lanes", 0.75),
            ("link_generation", event.data.get("link_newest_generation"), "over PCIe generation {now:.0f} of {most:.0f}", 0.65),
        )  # fmt: skip
        for what, most, words, confidence in sides:
            at_work = _at_work(window, f"gpu{number}", what, thresholds)[-thresholds.readings :]
            if not most or len(at_work) < thresholds.readings:
                continue
            highest = max(sample.value or 0.0 for sample in at_work)
            if not 0 < highest < float(most):
                continue
            text = f"GPU {number} was connected {words.format(now=highest, most=float(most))} in {len(at_work)} readings at work"
            headline = f"GPU {number} is connected {words.format(now=highest, most=float(most))}"
            evidence = (Evidence(text, "gpu", at_work[-1].at, highest),)
            return Finding("gpu-link-degraded", confidence, evidence, headline=headline)
    return None


def _at_work(window: Window, card: str, what: str, thresholds: Thresholds) -> list[Sample]:
    """Readings while the card had work: by its load at the same moment."""
    loads = [sample for sample in window.series(f"{card}.utilisation_percent") if sample.value is not None]
    found, position, load = [], 0, 0.0
    for sample in window.series(f"{card}.{what}"):
        while position < len(loads) and loads[position].at <= sample.at:
            load = loads[position].value or 0.0
            position += 1
        if sample.value is not None and load >= thresholds.at_work_percent:
            found.append(sample)
    return found
