"""The ranks of a job side by side: where each ran, how far it came, how it ended. The one that was first is marked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from holdfast.fleet.first_stop import FirstStop, first_stop
from holdfast.fleet.stories import RankStory, stories
from holdfast.views.safe_text import safe
from holdfast.vocabulary import Window

MOST = 12  # of a large job: the first one, and those around it in time
WIDTH = 80


def ranks_table(window: Window) -> list[str]:
    """Empty for a process that trains alone."""
    told = stories(window)
    if not told:
        return []
    first = first_stop(window)
    shown = _shown(told, first)
    host = max(4, *(len(one.joined.host) for one in shown))
    lines = [f"    rank  {'host':{host}}  {'steps':>7}  ended"]
    lines += [_row(one, host, marked=first is not None and one.rank == first.rank) for one in shown]
    return [*lines, *_left_out(told, shown)]


def _shown(told: Sequence[RankStory], first: FirstStop | None) -> list[RankStory]:
    if len(told) <= MOST:
        return list(told)
    if first is None:
        return list(told[:MOST])
    return sorted([first.story, *first.others[: MOST - 1]], key=lambda one: one.rank)


def _row(story: RankStory, host: int, *, marked: bool) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(story.stopped_at)) if story.stopped_at is not None else ""
    steps = "?" if story.steps is None else str(story.steps)
    row = f"  {'>' if marked else ' '} {story.rank:4}  {safe(story.joined.host):{host}}  {steps:>7}  {at} {safe(story.how())}"
    return row if len(row) <= WIDTH else row[: WIDTH - 1] + "…"


def _left_out(told: Sequence[RankStory], shown: Sequence[RankStory]) -> Iterator[str]:
    if len(told) > len(shown):
        yield f"    and {len(told) - len(shown)} more"
