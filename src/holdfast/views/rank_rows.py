"""The ranks of a job side by side, as every screen shows them: where each runs, how far it is, what is its own of a step, how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.fleet.first_stop import first_stop
from holdfast.fleet.stories import READS, RankStory, signals_of, stories
from holdfast.vocabulary import Window
from holdfast.windows import Reads

OF_EACH = ("steps_count", "step_s", "own_s", "wait_ratio")
SHOWN = READS | Reads(latest=tuple(f"train*.{name}" for name in OF_EACH))


@dataclass(frozen=True, slots=True)
class RankRow:
    rank: int
    host: str
    steps: int | None
    step_s: float | None
    own_s: float | None  # from its update to its backward pass, in which it waits for the others
    wait_ratio: float | None  # of the step, waiting for data
    ended: str  # in words; empty while it runs
    ended_at: float | None
    was_first: bool  # to stop


def rank_rows(window: Window) -> tuple[RankRow, ...]:
    """By rank; none for a process that trains alone."""
    told = stories(window)
    if not told:
        return ()
    first, prefixes = first_stop(window), signals_of(window)
    rank = first.rank if first is not None else None
    return tuple(_row(window, one, prefixes.get(one.joined.pid), one.rank == rank) for one in told)


def _row(window: Window, story: RankStory, prefix: str | None, was_first: bool) -> RankRow:
    step_s, own_s, waits = (window.value(f"{prefix}.{name}") if prefix else None for name in OF_EACH[1:])
    ended = story.how() if story.stopped_at is not None else ""
    return RankRow(story.rank, story.joined.host, story.steps, step_s, own_s, waits, ended, story.stopped_at, was_first)
