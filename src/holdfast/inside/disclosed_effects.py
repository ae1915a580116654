"""What is not the same in pieces, in words: one text for every framework."""

from __future__ import annotations

from typing import List


def apart(pieces: int, means: float, variances: float) -> str:
    """By how much normalisation differs, as shares of what the batch has; of the layer where it is most."""
    return (
        f"measured over {pieces} of them: their means lie {means:.1%} of a standard deviation apart, "
        f"their variances {variances:.1%}"
    )


def texts(normalising: int, rows: int, measured: str, draws: bool) -> List[str]:
    """`normalising` layers of batch normalisation saw pieces of so many rows, 0 where that is not known."""
    said = []
    if normalising:
        said.append(
            f"batch normalisation ({normalising} layer{'' if normalising == 1 else 's'}) normalises over micro-batches"
            f"{f' of {rows} rows' if rows else ''}, as with a smaller batch{'; ' + measured if measured else ''}"
        )
    if draws:
        said.append("dropout and noise draw anew for each micro-batch: the effect is that of another seed")
    return said
