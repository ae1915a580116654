"""Memory errors of a card that could not be corrected, counted while the run went; rows that wait to be replaced, or cannot be."""

from __future__ import annotations

from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@reads(
    course=["gpu*.ecc_uncorrected_count", "gpu*.rows_to_remap_count", "gpu*.rows_not_remapped_count"],
)
def find(window: Window) -> Finding | None:
    """Told is what came during the run: errors of last week are for `holdfast check`."""
    for name in window.names("gpu", ".ecc_uncorrected_count"):
        card = name.removesuffix(".ecc_uncorrected_count")
        number = card.removeprefix("gpu")
        told = [
            _rise(window, f"{card}.ecc_uncorrected_count", "memory errors that could not be corrected", number),
            _rise(window, f"{card}.rows_to_remap_count", "rows of its memory that a reset will replace", number),
            _rise(window, f"{card}.rows_not_remapped_count", "rows of its memory that nothing can replace", number),
        ]
        evidence = tuple(one for one in told if one is not None)
        if evidence:
            headline = f"The memory of GPU {number} had errors while it trained"
            return Finding("gpu-hardware-fault", 0.88, evidence, headline=headline)
    return None


def _rise(window: Window, name: str, words: str, number: str) -> Evidence | None:
    series = [sample for sample in window.series(name) if sample.value is not None]
    if not series:
        return None
    before, last = series[0].value or 0.0, series[-1]
    if (last.value or 0.0) <= before:
        return None
    more = (last.value or 0.0) - before
    return Evidence(
        f"GPU {number} counted {more:.0f} {words} during the run ({last.value:.0f} in all)", "gpu", last.at, more
    )
