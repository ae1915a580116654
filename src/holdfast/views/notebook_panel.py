"""A small panel in a notebook: how the run of its kernel stands, and what became of the kernel before. HTML and plain text.

Everything that comes from a run is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from holdfast.masking import masked_text
from holdfast.units import amount, duration
from holdfast.views.overview import Overview
from holdfast.views.safe_text import safe
from holdfast.views.timeline import Moment
from holdfast.vocabulary import Diagnosis

NEWS = 3  # of what was noticed, the latest
EVIDENCE = 3
FRAME = "border:1px solid #8888;border-radius:4px;padding:.5em .8em;margin:.2em 0;font-family:sans-serif;font-size:90%"
GOOD, BAD = "#2da44e", "#e5534b"  # of marks, not of text: notebooks are light or dark, and text has their own colour
QUIET = "opacity:.75"


@dataclass(frozen=True, slots=True)
class Before:
    """The run of a kernel that died."""

    run: str
    verdict: str
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: str, diagnosis: Diagnosis) -> Before:
        cause = diagnosis.cause
        if cause is None:
            return cls(run, diagnosis.summary)
        sure = "" if cause.level == "confident" else " (probably)"
        return cls(run, f"{cause.title.rstrip('.')}{sure}.", tuple(item.text for item in cause.evidence[:EVIDENCE]))


def as_html(overview: Overview | None, moments: Sequence[Moment], before: Before | None) -> str:
    return "".join([*(_before_html(before) if before else ()), *(_now_html(overview, moments) if overview else ())])


def as_text(overview: Overview | None, moments: Sequence[Moment], before: Before | None) -> str:
    lines: list[str] = []
    if before is not None:
        lines += [f"holdfast: the kernel before this one died: {_shown(before.verdict)}"]
        lines += [f"          {_shown(text)}" for text in before.evidence]
        lines += [f"          for more: holdfast why {_shown(before.run)}"]
    if overview is not None:
        facts = " · ".join(f"{name} {value}" for name, value in _facts(overview))
        lines += [f"holdfast: {overview.outcome} · {overview.run}{' · ' if facts else ''}{facts}"]
        lines += [f"holdfast: {_shown(moment.text)}" for moment in _news(moments)]
    return "\n".join(lines)


def news(moments: Sequence[Moment]) -> str:
    """For a terminal, where nothing is drawn anew: what was noticed last."""
    latest = _news(moments)
    return f"holdfast: {_shown(latest[-1].text)}" if latest else ""


def _before_html(before: Before) -> Iterator[str]:
    yield f'<div style="{FRAME}">{_mark(BAD)}<b>The kernel before this one died.</b> {_escaped(before.verdict)}'
    yield from (f'<div style="{QUIET}">{_escaped(text)}</div>' for text in before.evidence)
    yield f"<div>For more: <code>holdfast why {_escaped(before.run)}</code></div></div>"


def _now_html(overview: Overview, moments: Sequence[Moment]) -> Iterator[str]:
    colour = GOOD if overview.outcome in ("running", "completed") else BAD
    yield f'<div style="{FRAME}">{_mark(colour)}<b>Holdfast</b> {_escaped(overview.outcome)} '
    yield f'<span style="{QUIET}">{_escaped(overview.run)}</span><div>'
    yield " · ".join(
        f'<span style="{QUIET}">{_escaped(name)}</span> {_escaped(value)}' for name, value in _facts(overview)
    )
    yield "</div>"
    yield from (f"<div>{_mark(BAD)}{_escaped(moment.text)}</div>" for moment in _news(moments))
    yield "</div>"


def _mark(colour: str) -> str:
    return f'<span style="color:{colour}">●</span> '


def _facts(overview: Overview) -> Iterator[tuple[str, str]]:
    progress = overview.progress
    if progress is not None:
        yield "step", str(progress.step)
        if progress.epoch is not None:
            yield "epoch", str(progress.epoch)
        if progress.steps_per_s is not None:
            yield "steps/s", f"{progress.steps_per_s:.3g}"
        if progress.wait_ratio is not None:
            yield "waiting for data", f"{progress.wait_ratio:.0%}"
    if overview.loss is not None:
        yield "loss", f"{overview.loss.value:.4g}"
    for level in overview.memory:
        of = f" of {amount(level.limit_bytes, 'bytes')}" if level.limit_bytes else ""
        left = f", full in about {duration(level.seconds_left)}" if level.seconds_left is not None else ""
        yield f"memory, {level.what}", f"{amount(level.used_bytes, 'bytes')}{of}{left}"


def _news(moments: Sequence[Moment]) -> list[Moment]:
    return [moment for moment in moments if moment.weight in ("warn", "bad")][-NEWS:]


def _shown(text: str) -> str:
    """Notebooks are kept and shared with their outputs."""
    return safe(masked_text(text))


def _escaped(text: str) -> str:
    return escape(_shown(text))
