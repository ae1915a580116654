"""What is gathered of a table becomes findings. Breaking is what no training survives as it is; the rest is advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from holdfast.data.audit.columns import PLACES, Columns
from holdfast.data.audit.duplicates import Same, repeated
from holdfast.data.audit.labels import Labels
from holdfast.data.audit.report import ColumnSummary, Finding, TableReport
from holdfast.data.audit.tables import Gathered
from holdfast.data.audit.tallies import imbalance, judged_tallies
from holdfast.data.audit.texts import EXAMPLES, TextColumn
from holdfast.data.formats.contract import Table

MOST_COLUMNS_NAMED = 100  # with a finding of their own; of more of them one tells
LEAST_ROWS = 20  # of fewer no advice is drawn
SCALES_APART = 1e4
FAR = 1000.0  # times the spread of nearly all values
CODES = frozenset(
    float(f"{sign}{code}") for sign in "+-" for code in ("999", "9999", "99999", "999999", "1e30", "1e36", "9.96921e36")
)
CODE_FAR = 3.0
NUMBERS_MEANT = 0.9  # of a text column: then the rest are mistakes
BINS = 24


class Judge:
    def __init__(self, table: Table, found: Gathered) -> None:
        self.path, self.table, self.found = str(table.path), table, found
        prefix = f"{table.member}." if table.member else ""
        alone = table.member and len(table.schema.columns) == 1
        self.names = [table.member] if alone else [prefix + column.name for column in table.schema.columns]

    def finding(
        self,
        id: str,
        text: str,
        column: str = "",
        count: int = 0,
        where: Sequence[int] = (),
        *,
        breaks: bool = False,
        path: str = "",
    ) -> Finding:
        return Finding(id, path or self.path, column, count, tuple(where)[:PLACES], breaks, text)

    def report(self) -> TableReport:
        schema = self.table.schema
        return TableReport(
            self.path,
            self.table.member,
            self.table.format,
            self.found.columns.rows,
            summaries(self.names, self.table, self.found.columns),
            list(self.findings()),
            schema.row_shape,
            tuple((column.name, column.dtype) for column in schema.columns[:MOST_COLUMNS_NAMED]),
            self.found.labels is not None,
        )

    def findings(self) -> Iterator[Finding]:
        if self.found.unreadable:
            rows = self.found.columns.rows
            yield self.finding(
                "unreadable", self.found.unreadable, self.table.member, 1, [rows] if rows else [], breaks=True
            )
        for trouble in self.found.troubles:
            yield self.finding(
                trouble.id,
                trouble.text.replace("{count}", f"{trouble.count:,}"),
                trouble.column,
                trouble.count,
                trouble.rows,
                breaks=trouble.breaks_training,
                path=trouble.path,
            )
        yield from self._non_finite()
        yield from self._texts()
        yield from self._labels()
        if self.found.columns.rows >= LEAST_ROWS and not self.found.columns.is_quick:
            yield from self._constant()
            yield from self._far_out()
            yield from self._scales()
        yield from self._duplicates()
        yield from judged_tallies(self.path, self.found.tallies)

    def _non_finite(self) -> Iterator[Finding]:
        columns = self.found.columns
        bad = [int(number) for number in np.flatnonzero(columns.bad)]
        for number in bad[:MOST_COLUMNS_NAMED]:
            told = [(columns.nan[number], "NaN"), (columns.plus[number], "+inf"), (columns.minus[number], "-inf")]
            text = self.found.texts.get(number)
            words = text.words if text is not None else 0
            told.append((columns.missing[number] - words, "missing"))
            said = ", ".join(f"{count:,} {what}" for count, what in told if count)
            where = [row for row in columns.places.get(number, []) if text is None or row not in text.places]
            count = int(columns.bad[number]) - words
            if count:
                yield self.finding("non-finite", said, self.names[number], count, where, breaks=True)
        if rest := bad[MOST_COLUMNS_NAMED:]:
            count = int(columns.bad[rest].sum())
            rows = sorted({row for number in rest for row in columns.places.get(number, [])})
            yield self.finding(
                "non-finite", f"{count:,} in {len(rest):,} further columns", "", count, rows, breaks=True
            )

    def _texts(self) -> Iterator[Finding]:
        for number, text in sorted(self.found.texts.items()):
            name = self.names[number]
            shown = ", ".join(f'"{example}"' for example in text.examples)
            if text.words and text.numbers and text.number_share >= NUMBERS_MEANT:
                said = f"text in a column of numbers: {text.words:,}, as {shown}"
                yield self.finding("dtype", said, name, text.words, text.places, breaks=True)
            elif text.words >= LEAST_ROWS and (wrong := decimal_commas(text)):
                among = f", among {text.numbers:,} that are plain" if text.numbers else ""
                said = f"numbers written as text: {shown}; a reader takes {wrong} for words{among}"
                yield self.finding("dtype", said, name, text.words, text.places, breaks=True)
            elif text.words and text.number_share > 1 - NUMBERS_MEANT and text.numbers >= LEAST_ROWS:
                said = f"{text.numbers:,} numbers and {text.words:,} words in one column: {shown}"
                yield self.finding("dtype", said, name, text.words, text.places)
            yield from self._spellings(number, text, name)
            yield from self._dates(text, name)
            if text.missing and not text.is_among_numbers and text.number_share < NUMBERS_MEANT:
                said = f"{text.missing:,} missing in a column of text"
                yield self.finding("non-finite", said, name, text.missing, text.missing_places)

    def _spellings(self, number: int, text: TextColumn, name: str) -> Iterator[Finding]:
        """`Cat` beside `cat` is a class of its own to every encoder."""
        odd = text.other_spellings()
        if not odd:
            return
        is_label = self.found.labels is not None and self.found.labels.column == number
        shown = ", ".join(f'"{value}" for "{usual}"' for value, usual in list(odd.items())[:EXAMPLES])
        count = sum(text.values[value] for value in odd)
        said = f"values that differ from others in case or spaces alone: {count:,}, as {shown}"
        yield self.finding("label-range" if is_label else "dtype", said, name, count, breaks=is_label)

    def _dates(self, text: TextColumn, name: str) -> Iterator[Finding]:
        ways = text.dates.told_apart()
        if len(ways) < 2 or text.dates.count() < NUMBERS_MEANT * text.words:
            return
        others = list(ways.values())[1:]
        shown = ", ".join(f"{way.count:,} as {written}" for written, way in ways.items())
        said = f"dates written in {len(ways)} ways: {shown}"
        where = sorted(row for way in others for row in way.places)
        yield self.finding("dtype", said, name, sum(way.count for way in others), where)

    def _labels(self) -> Iterator[Finding]:
        labels = self.found.labels
        if labels is None:
            return
        name = self.names[labels.column]
        text = self.found.texts.get(labels.column)
        if labels.outside:
            wrong = [value for value in labels.counts if not _is_class(value, labels.classes)]
            shown = ", ".join(f"{value:g}" for value in sorted(wrong)[:8])
            examples = f", as {shown}" if shown else ""
            said = f"labels that are none of 0…{(labels.classes or 0) - 1}: {labels.outside:,}{examples}"
            yield self.finding("label-range", said, name, labels.outside, labels.places, breaks=True)
        yield from self._label_numbers(labels, name)
        classes = {value: count for value, count in labels.counts.items() if _is_class(value, labels.classes)}
        named = {f"{value:g}": count for value, count in classes.items()}
        words = text is not None and text.number_share < NUMBERS_MEANT
        yield from self._balance(dict(text.values) if text is not None and words else named, name)

    def _label_numbers(self, labels: Labels, name: str) -> Iterator[Finding]:
        """Where nobody said how many classes there are: what would be wrong for any number of them."""
        if labels.classes is not None or not labels.counts:
            return
        values = sorted(labels.counts)
        if values != [float(int(value)) for value in values] or values == [-1.0, 1.0]:
            return
        if values[0] < 0:
            count = sum(labels.counts[value] for value in values if value < 0)
            said = f"labels below 0, which is no class: {count:,}, as {values[0]:g}"
            yield self.finding("label-range", said, name, count)
        elif values[0] == 1 and len(values) == values[-1] and len(values) > 1:
            said = f"labels are 1…{values[-1]:g}: a model with {len(values)} outputs has classes 0…{len(values) - 1}"
            yield self.finding("label-range", said, name, labels.counts[values[-1]])

    def _balance(self, counts: dict[str, int], name: str) -> Iterator[Finding]:
        if said := imbalance(counts):
            yield self.finding("imbalance", said, name, min(counts.values()))

    def _constant(self) -> Iterator[Finding]:
        columns = self.found.columns
        constant = [
            int(number)
            for number in np.flatnonzero((columns.low == columns.high) & (columns.finite >= LEAST_ROWS))
            if self.found.labels is None or number != self.found.labels.column
        ]
        if len(constant) > 10 or (constant and self.table.schema.row_shape is not None and len(self.names) > 10):
            names = ", ".join(self.names[number] for number in constant[:20])
            more = f" and {len(constant) - 20:,} more" if len(constant) > 20 else ""
            said = f"{len(constant):,} of {len(self.names):,} columns have one value in every row: {names}{more}"
            yield self.finding("constant", said, names, len(constant))
            return
        for number in constant:
            said = f"every row has {columns.low[number]:g}"
            yield self.finding("constant", said, self.names[number], int(columns.finite[number]))

    def _far_out(self) -> Iterator[Finding]:
        columns = self.found.columns
        for number in range(min(columns.width, 10 * MOST_COLUMNS_NAMED)):
            if columns.finite[number] >= LEAST_ROWS and not (self.found.labels and self.found.labels.column == number):
                yield from self._far_out_in(columns, number)

    def _far_out_in(self, columns: Columns, number: int) -> Iterator[Finding]:
        values = columns.sampled_values(number)
        if len(values) < LEAST_ROWS:
            return
        low, middle, high = (float(value) for value in np.quantile(values.astype(np.float64), (0.05, 0.5, 0.95)))
        spread = high - low
        for extreme, row in (
            (columns.low[number], columns.low_row[number]),
            (columns.high[number], columns.high_row[number]),
        ):
            apart = abs(float(extreme) - middle)
            if spread > 0 and apart > FAR * spread:
                said = f"{extreme:g} is {apart / spread:,.0f} times the spread of most values away from them ({low:g}…{high:g})"
                yield self.finding("range", said, self.names[number], 1, [int(row)])
            elif spread > 0 and float(extreme) in CODES and apart > CODE_FAR * spread:
                said = f"{extreme:g} looks like a code for a missing value: most are in {low:g}…{high:g}"
                yield self.finding("range", said, self.names[number], 1, [int(row)])

    def _scales(self) -> Iterator[Finding]:
        columns, label = self.found.columns, self.found.labels
        deviation = columns.deviation()
        usable = (columns.finite >= LEAST_ROWS) & (deviation > 0) & np.isfinite(deviation)
        if label is not None:
            usable[label.column] = False
        numbers = np.flatnonzero(usable)
        if len(numbers) < 2:
            return
        wide, narrow = numbers[np.argmax(deviation[numbers])], numbers[np.argmin(deviation[numbers])]
        ratio = deviation[wide] / deviation[narrow]
        if ratio >= SCALES_APART:
            said = (
                f"columns differ {ratio:.0e} times in scale: {self.names[wide]} varies by {deviation[wide]:.3g}, "
                f"{self.names[narrow]} by {deviation[narrow]:.3g}; scale them"
            )
            yield self.finding("scale", said, self.names[wide], 1)

    def _duplicates(self) -> Iterator[Finding]:
        if self.found.hashes is not None:
            same = repeated(self.found.hashes)
            if same.count:
                yield self.finding("duplicate", told_same(same), "", same.count, [row for row, _ in same.rows])


def told_same(same: Same) -> str:
    about = "about " if same.is_estimate else ""
    first = f"; row {same.rows[0][0]:,} is row {same.rows[0][1]:,} again" if same.rows else ""
    return f"rows that are the same as an earlier one, by a 64-bit hash: {about}{same.count:,}{first}"


def decimal_commas(text: TextColumn) -> str:
    """Of the values it has: nearly all digits with one comma, a currency or a per cent sign."""
    if not text.values:
        return ""
    alike = sum(count for value, count in text.values.items() if _is_dressed_number(value))
    return "them" if alike >= NUMBERS_MEANT * text.words else ""


def _is_dressed_number(value: str) -> bool:
    plain = value.strip().strip("$€£%").replace(",", "").replace(" ", "").replace("'", "")
    return plain != value.strip() and plain.replace(".", "", 1).lstrip("+-").isdigit()


def _is_class(value: float, classes: int | None) -> bool:
    return classes is None or (value == int(value) and 0 <= value < classes)


def summaries(names: Sequence[str], table: Table, columns: Columns) -> list[ColumnSummary]:
    if columns.is_quick:
        return []
    deviation = columns.deviation()
    found = []
    for number in range(min(columns.width, MOST_COLUMNS_NAMED)):
        known = columns.finite[number] > 0
        low, high, mean, apart = (
            float(vector[number]) if known and np.isfinite(vector[number]) else None
            for vector in (columns.low, columns.high, columns.mean, deviation)
        )
        found.append(
            ColumnSummary(
                names[number], table.schema.columns[number].dtype, int(columns.bad[number]), low, high, mean, apart,
                columns.histogram(number, BINS),
            )
        )  # fmt: skip
    return found
