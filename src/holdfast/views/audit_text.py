"""What an audit found, for people: what breaks training first, findings of one kind in one file together."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from holdfast.data.audit.report import Finding, Report
from holdfast.data.fix.cleaning import Cleaning
from holdfast.units import amount
from holdfast.views.safe_text import safe

RED, YELLOW, PLAIN = "\033[31m", "\033[33m", "\033[0m"
INDENT = "        "
ROWS_SHOWN = 5
COLUMNS_SHOWN = 8


def as_text(report: Report, width: int, colour: bool) -> str:
    lines = [line for group in _groups(report.findings) for line in _told(group, width, colour)]
    return "\n".join([*lines, *([""] if lines else []), summary(report)])


def _groups(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    for _, group in groupby(findings, key=lambda one: (one.breaks_training, one.path, one.id)):
        yield list(group)


def _told(group: list[Finding], width: int, colour: bool) -> Iterator[str]:
    breaks, path = group[0].breaks_training, safe(group[0].path)
    word = "breaks" if breaks else "advice"
    coloured = f"{RED if breaks else YELLOW}{word}{PLAIN}" if colour else word
    yield f"{coloured}  {path}: {group[0].id}"
    for finding in group[:COLUMNS_SHOWN]:
        column = f"{finding.column}: " if finding.column and group[0].id != "constant" else ""
        yield from _wrapped(f"{column}{finding.text}{_rows(finding)}", width)
    if len(group) > COLUMNS_SHOWN:
        rest = group[COLUMNS_SHOWN:]
        yield f"{INDENT}and {sum(one.count for one in rest):,} in {len(rest)} further columns; --json has all"


def _rows(finding: Finding) -> str:
    if not finding.where or finding.id in ("duplicate", "overlap", "unreadable"):
        return ""
    shown = ", ".join(f"{row:,}" for row in finding.where[:ROWS_SHOWN])
    more = ", …" if len(finding.where) > ROWS_SHOWN or finding.count > len(finding.where) else ""
    return f" (row {shown}{more})"


def _wrapped(text: str, width: int) -> list[str]:
    room = max(40, width - len(INDENT))
    return [INDENT + line for line in textwrap.wrap(safe(text), room, break_on_hyphens=False) or [""]]


def summary(report: Report) -> str:
    speed = (
        f", {amount(report.bytes / report.seconds, 'bytes')}/s"
        if report.bytes > 100 << 20 and report.seconds > 0
        else ""
    )
    files = "1 file" if report.files == 1 else f"{report.files:,} files"
    kept = f", {report.continued} of them read before" if report.continued else ""
    read = f"{files}{kept}, {report.rows:,} rows, {amount(report.bytes, 'bytes')} in {report.seconds:.1f} s{speed}"
    breaking = sum(finding.breaks_training for finding in report.findings)
    advice = len(report.findings) - breaking
    if breaking:
        verdict = f"this data is not fit to train on as it is: {breaking} {'problem' if breaking == 1 else 'problems'}"
        verdict += f", {advice} more to look at" if advice else ""
    else:
        verdict = f"nothing here breaks training; {advice} to look at" if advice else "this data is fit to train on"
    return f"{verdict} ({read})"


def fix_as_text(done: Cleaning) -> str:
    lines = []
    for one in done.files:
        source, target = safe(str(one.source)), safe(str(one.target))
        if one.refused:
            lines.append(f"not copied: {source}: {safe(one.refused)}")
        elif one.was_there:
            lines.append(f"{target} is there already, made from {source} as it is now")
        else:
            did = [
                f"{one.changed:,} values changed" if one.changed else "",
                f"{one.dropped:,} rows left out" if one.dropped else "",
            ]
            lines.append(f"{source} → {target}: {', '.join(filter(None, did)) or 'nothing to change'}")
    lines.append("each change is listed beside its copy, in …changes.jsonl")
    return "\n".join(lines)
