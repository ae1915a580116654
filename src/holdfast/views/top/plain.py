"""The screen once, as plain text: for pipes, logs and terminals that can only print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from holdfast.views.overview import Overview
from holdfast.views.timeline import Moment
from holdfast.views.top import panels
from holdfast.views.top.panels import Canvas, LookAt, Row, Verdict

MOMENTS = 15  # the latest


def as_text(
    found: Overview, moments: Sequence[Moment], verdict: Verdict, look_at: LookAt, *, canvas: Canvas, now: float
) -> str:
    inner = Canvas(canvas.width - 2, canvas.symbols)
    parts = [
        ("progress", panels.progress_rows(found, inner, now)),
        ("ranks", panels.rank_rows(found, verdict, inner)),
        ("memory", panels.memory_rows(found, inner)),
        ("training", panels.curve_rows(found, inner)),
        ("what happened", panels.moment_rows(moments[-MOMENTS:], inner)),
        (panels.processes_title(found), panels.process_rows(found, look_at, inner)),
    ]
    lines = [panels.head(found, verdict, now), found.command, ""]
    lines += [line for row in panels.verdict_rows(found, verdict) for line in textwrap.wrap(row.text, canvas.width)]
    for title, rows in ((title, rows) for title, rows in parts if rows):
        lines += ["", title, *_indented(rows)]
    return "\n".join(lines)


def _indented(rows: Iterable[Row]) -> Iterator[str]:
    return (f"  {row.text}".rstrip() for row in rows)
