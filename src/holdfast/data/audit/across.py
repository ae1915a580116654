"""What only several files together show: other columns or shapes than their kin, and rows that are in two sets."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.data.audit.duplicates import Hashes, shared
from holdfast.data.audit.report import Finding, TableReport

TRAINING = re.compile(r"(?:^|[^a-z])train(?:ing)?(?:$|[^a-z])", re.IGNORECASE)
OTHER = re.compile(r"(?:^|[^a-z])(?:val|valid|validation|dev|test|testing|eval)(?:$|[^a-z])", re.IGNORECASE)
FEATURES = re.compile(r"^(?:x|features?|images?|inputs?|data)(?=$|[^a-z])", re.IGNORECASE)
LABELS = re.compile(r"^(?:y|labels?|targets?)(?=$|[^a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Audited:
    report: TableReport
    hashes: Hashes | None
    is_against: bool = False  # of what was named as the other set


def across(all_of_them: Sequence[Audited]) -> Iterator[Finding]:
    families: defaultdict[tuple[str, ...], list[TableReport]] = defaultdict(list)
    for one in all_of_them:
        families[_family(one.report)].append(one.report)
    for family in families.values():
        yield from _compared(family)
    yield from _empty(families)
    yield from _features_and_labels([one.report for one in all_of_them])
    yield from _overlap(all_of_them)


def _family(report: TableReport) -> tuple[str, ...]:
    """Files whose names differ in digits alone are shards of one set."""
    path = Path(report.path)
    return str(path.parent), re.sub(r"\d+", "0", path.name), report.member, report.format


def _compared(family: Sequence[TableReport]) -> Iterator[Finding]:
    if len(family) < 2:
        return
    shape, _ = Counter(_shape(report) for report in family).most_common(1)[0]
    like_most = [report for report in family if _shape(report) == shape]
    types, _ = Counter(report.family for report in like_most).most_common(1)[0]
    for report in family:
        if _shape(report) != shape:
            said = f"{_told(_shape(report))}, where {len(like_most)} other files here have {_told(shape)}"
            yield Finding("shape", report.path, report.member, 1, (), True, said)
        elif report.family != types:
            differing = [(a, b) for a, b in zip(report.family, types, strict=True) if a != b]
            (name, dtype), (_, usual) = differing[0]
            more = f", and {len(differing) - 1} more columns" if len(differing) > 1 else ""
            said = f"column {name} is {dtype}, where other files here have {usual}{more}"
            yield Finding("dtype", report.path, name, len(differing), (), True, said)


Shape = tuple[tuple[int, ...] | None, tuple[str, ...]]


def _shape(report: TableReport) -> Shape:
    """Of an array the shape of its rows; of a table the names of its columns."""
    if report.row_shape is not None:
        return report.row_shape, ()
    return None, tuple(name for name, _ in report.family)


def _told(shape: Shape) -> str:
    if shape[0] is not None:
        return f"rows of shape {shape[0]}"
    return f"{len(shape[1])} columns ({', '.join(shape[1][:6])}{', …' if len(shape[1]) > 6 else ''})"


def _empty(families: dict[tuple[str, ...], list[TableReport]]) -> Iterator[Finding]:
    for family in families.values():
        filled = any(report.rows for report in family)
        for report in family:
            broken = any(finding.id == "unreadable" for finding in report.findings)
            if not report.rows and not broken:
                yield Finding("shape", report.path, report.member, 0, (), not filled, "it has no rows")


def _features_and_labels(reports: Sequence[TableReport]) -> Iterator[Finding]:
    """x_train.npy beside y_train.npy: a label for each row."""
    named: dict[tuple[str, str], list[TableReport]] = defaultdict(list)
    for report in reports:
        stem, place = (
            (report.member, report.path) if report.member else (Path(report.path).stem, str(Path(report.path).parent))
        )
        for kind in (FEATURES, LABELS):
            if report.row_shape is not None and kind.match(stem):
                named[place, kind.sub("", stem)].append(report)
    for pair in named.values():
        if len(pair) == 2 and pair[0].rows != pair[1].rows:
            first, second = (f"{report.member or Path(report.path).name} has {report.rows:,}" for report in pair)
            count = abs(pair[0].rows - pair[1].rows)
            yield Finding(
                "shape",
                pair[1].path,
                pair[1].member,
                count,
                (),
                True,
                f"rows and labels do not match: {first} rows, {second}",
            )


def _overlap(all_of_them: Sequence[Audited]) -> Iterator[Finding]:
    named = any(one.is_against for one in all_of_them)
    first = [one for one in all_of_them if (not one.is_against if named else _is(one, TRAINING))]
    second = [one for one in all_of_them if (one.is_against if named else _is(one, OTHER) and not _is(one, TRAINING))]
    for other in second:
        for one in first:
            if one.hashes is None or other.hashes is None or _shape(one.report) != _shape(other.report):
                continue
            if one.report.family != other.report.family and one.report.row_shape is not None:
                continue
            same = shared(one.hashes, other.hashes)
            if same.count:
                about = "about " if same.is_estimate else ""
                row = f"; row {same.rows[0][0]:,} is row {same.rows[0][1]:,} there" if same.rows else ""
                said = f"{about}{same.count:,} of {other.report.rows:,} rows are also in {one.report.path}, by a 64-bit hash{row}"
                yield Finding(
                    "overlap",
                    other.report.path,
                    other.report.member,
                    same.count,
                    tuple(row for row, _ in same.rows),
                    False,
                    said,
                )


def _is(one: Audited, pattern: re.Pattern[str]) -> bool:
    path = Path(one.report.path)
    return any(pattern.search(word) for word in (path.parent.name, path.stem, one.report.member))
