"""Is this data fit to train on: every file read once, in bounded memory, judged by itself and beside the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.data.audit.across import Audited, across
from holdfast.data.audit.duplicates import Hashes
from holdfast.data.audit.judging import Judge
from holdfast.data.audit.kept import Kept
from holdfast.data.audit.own_rules import OwnRules
from holdfast.data.audit.report import Finding, Report, TableReport, ordered
from holdfast.data.audit.tables import Wanted, gathered
from holdfast.data.formats import open_path
from holdfast.data.formats.contract import Table

Watching = Callable[[Path, int, int], None]  # the file, bytes of it that were read, bytes it has


@dataclass(frozen=True)
class Request:
    files: Sequence[Path]
    against: Sequence[Path] = ()
    wanted: Wanted = field(default_factory=Wanted)
    rules: OwnRules | None = None


def audit(request: Request, kept: Kept | None = None, watching: Watching | None = None) -> Report:
    began = time.monotonic()
    audited: list[Audited] = []
    continued = 0
    for path in [*request.files, *request.against]:
        is_against = path in request.against
        known = kept.load(path) if kept is not None else None
        if known is not None:
            continued += 1
            audited += [Audited(report, hashes, is_against) for report, hashes in zip(*known, strict=True)]
            continue
        started = time.monotonic()
        reports, hashes = look_at_file(path, request.wanted, watching)
        if kept is not None:
            kept.take(path, reports, hashes, time.monotonic() - started)
        audited += [Audited(report, one, is_against) for report, one in zip(reports, hashes, strict=True)]
    tables = [one.report for one in audited]
    findings = [finding for table in tables for finding in table.findings] + list(across(audited))
    if request.rules is not None:
        unread = {finding.path for finding in findings if finding.id == "unreadable"}
        findings += request.rules.findings([path for path in request.files if str(path) not in unread])
    size = sum(size_of(path) for path in [*request.files, *request.against])
    files = len({table.path for table in tables if table.format != "images"})
    files += sum(table.rows for table in tables if table.format == "images")
    return Report(files, tables, ordered(findings), size, time.monotonic() - began, continued)


def look_at_file(
    path: Path, wanted: Wanted, watching: Watching | None
) -> tuple[list[TableReport], list[Hashes | None]]:
    opened = open_path(path)
    reports: list[TableReport] = []
    hashes: list[Hashes | None] = []
    for member, reason in opened.troubles:
        finding = Finding("unreadable", str(path), member, 1, (), True, reason)
        reports.append(TableReport(str(path), member, "", 0, [], [finding]))
        hashes.append(None)
    size = sum(table.bytes for table in opened.tables)
    done = 0

    def read(more: int) -> None:
        nonlocal done
        done += more
        if watching is not None:
            watching(path, done, size)

    for table in opened.tables:
        try:
            report, hashed = _look_at_table(table, wanted, read)
        finally:
            table.close()
        reports.append(report)
        hashes.append(hashed)
    return reports, hashes


def _look_at_table(table: Table, wanted: Wanted, read: Callable[[int], None]) -> tuple[TableReport, Hashes | None]:
    found = gathered(table, wanted, read)
    return Judge(table, found).report(), found.hashes


def size_of(path: Path) -> int:
    if path.is_dir():
        return sum(inner.stat().st_size for inner in path.rglob("*") if inner.is_file())
    return path.stat().st_size if path.exists() else 0
