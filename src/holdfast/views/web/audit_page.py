"""What an audit found, as one file that opens from disk without a network or scripts: findings, and each column's histogram."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.data.audit.report import ColumnSummary, Finding, Report, TableReport
from holdfast.views.audit_text import summary
from holdfast.views.web.markup import Markup, join, tag
from holdfast.views.web.pages import page, section, top
from holdfast.views.web.report import LOG_POLICY, head
from holdfast.views.web.sections import shown

WIDTH, HEIGHT = 168, 28  # of a histogram, in pixels
MOST_TABLES = 200
FINDING_HEAD = ("", "file", "column", "what", "count", "first rows")
COLUMN_HEAD = ("column", "type", "bad", "least", "mean", "most", "deviation", "of a sample, from least to most")


def audit_page(report: Report) -> str:
    outcome = ("not fit to train on", "bad") if report.breaks_training else ("fit to train on", "done")
    first = summary(report)
    body = [
        top("audit", link=False),
        tag(
            "main",
            tag("section", tag("span", outcome[0], class_=f"outcome {outcome[1]}"), tag("h1", first), id="verdict"),
            section("problems", "What was found", _findings(report.findings)),
            *(section(f"table-{number}", _title(table), _columns(table.columns))
              for number, table in enumerate(report.tables[:MOST_TABLES]) if table.columns),
            id="content",
        ),
    ]  # fmt: skip
    return page(f"Audit: {first}", join(body), head(LOG_POLICY))


def _title(table: TableReport) -> str:
    return f"{shown(table.path)}{f' · {shown(table.member)}' if table.member else ''}: {table.rows:,} rows"


def _table(head: Sequence[str], rows: Sequence[Markup]) -> Markup:
    return tag("table", tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))), tag("tbody", *rows))


def _findings(findings: Sequence[Finding]) -> Markup:
    if not findings:
        return tag("p", "Nothing.")
    return _table(FINDING_HEAD, [_finding(finding) for finding in findings])


def _finding(finding: Finding) -> Markup:
    word, mood = ("breaks training", "bad") if finding.breaks_training else ("advice", "warn")
    rows = ", ".join(f"{row:,}" for row in finding.where[:10]) + (", …" if len(finding.where) > 10 else "")
    return tag(
        "tr",
        tag("td", tag("span", word, class_=f"outcome {mood}")),
        tag("td", shown(finding.path)),
        tag("td", shown(finding.column)),
        tag("td", f"{finding.id}: {shown(finding.text)}"),
        tag("td", f"{finding.count:,}"),
        tag("td", rows),
    )


def _columns(columns: Sequence[ColumnSummary]) -> Markup:
    return _table(COLUMN_HEAD, [_column(column) for column in columns])


def _column(column: ColumnSummary) -> Markup:
    figures = (column.low, column.mean, column.high, column.deviation)
    return tag(
        "tr",
        tag("td", shown(column.name)),
        tag("td", shown(column.dtype)),
        tag("td", f"{column.bad:,}"),
        *(tag("td", "–" if figure is None else f"{figure:.5g}") for figure in figures),
        tag("td", _histogram(column.histogram)),
    )


def _histogram(counts: Sequence[int]) -> Markup:
    """The square root of each count, so that a tail is seen beside the middle."""
    most = max(counts, default=0)
    if not most:
        return join([])
    wide = WIDTH / len(counts)
    bars = [
        tag("rect", x=f"{number * wide:.1f}", y=f"{HEIGHT - high:.1f}", width=f"{wide - 1:.1f}", height=f"{high:.1f}")
        for number, count in enumerate(counts)
        if (high := HEIGHT * (count / most) ** 0.5) > 0
    ]
    told = f"{sum(counts):,} values in {len(counts)} steps"
    return tag("svg", tag("title", told), *bars, width=str(WIDTH), height=str(HEIGHT), role="img", fill="currentColor")
