"""Cleaned copies of CSV: a line that has nothing bad in it is copied byte for byte."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from holdfast.data.fix.output import Output
from holdfast.data.fix.rules import Change, Rules, has_bad_label
from holdfast.data.formats.csv_text import CsvTable, Dialect
from holdfast.data.formats.written_numbers import MISSING_MARKS, parsed


class CsvCleaner:
    def __init__(self, dialect: Dialect, rules: Rules, fills: dict[int, float], output: Output) -> None:
        self.dialect, self.rules, self.fills, self.output = dialect, rules, fills, output
        names = list(dialect.names)
        self.label = names.index(rules.labels) if rules.labels in names else None
        has_header = dialect.header_bytes > len(b"\xef\xbb\xbf") and any(dialect.numbers)
        self.header = names if has_header else None
        self.row = 0

    def block(self, content: bytes, into: BinaryIO) -> None:
        """Whole lines."""
        text = content.decode("utf-8", "surrogateescape")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=self.dialect.delimiter))
        lines = text.splitlines(keepends=True)
        as_they_are = '"' not in text and len(lines) == len(rows)
        rows_there = [fields for fields in rows if fields]
        columns = self._numbers([fields for fields in rows_there if len(fields) == len(self.dialect)])
        position = 0
        for number, fields in enumerate(rows):
            if not fields:
                continue
            kept, changed = None, False
            if len(fields) != len(self.dialect):
                self.output.drop(self.row, f"{len(fields)} fields instead of {len(self.dialect)}")
            elif [word.strip() for word in fields] == self.header:
                self.output.drop(self.row, "the header once more")
                position += 1
            else:
                kept, changed = self._cleaned(fields, {column: values[position] for column, values in columns.items()})
                position += 1
            if kept is not None:
                line = lines[number] if as_they_are and not changed else self._line(kept)
                into.write(line.encode("utf-8", "surrogateescape"))
            self.row += 1

    def _numbers(self, rows: list[list[str]]) -> dict[int, list[float | None]]:
        """Of each column that is meant to be numbers; None where there is none."""
        found: dict[int, list[float | None]] = {}
        for column, meant in enumerate(self.dialect.numbers):
            if meant:
                texts = pa.array([fields[column] for fields in rows], pa.large_string())
                values, present = parsed(texts)
                found[column] = [float(value) if there else None for value, there in zip(values, present, strict=True)]
        return found

    def _cleaned(self, fields: list[str], numbers: dict[int, float | None]) -> tuple[list[str] | None, bool]:
        """The fields to write, or None for a row that is left out; and whether something changed."""
        changes = []
        for column, value in numbers.items():
            name, written = self.dialect.names[column], fields[column]
            bad = value is None or not np.isfinite(value)
            if column == self.label:
                label = np.array([np.nan if value is None else value])
                if has_bad_label(label, np.array([bad]), self.rules.classes)[0]:
                    self.output.drop(self.row, f"{name}: {written!r} is no label")
                    return None, False
                continue
            now = value
            if self.rules.clip is not None and value is not None and not np.isnan(value):
                now = min(max(value, self.rules.clip[0]), self.rules.clip[1])
                bad = False
            if bad and self.rules.drop_rows:
                self.output.drop(self.row, f"{name}: {written!r}")
                return None, False
            if bad and column in self.fills:
                now = self.fills[column]
            if now is not None and now != value and not (np.isnan(now) and bad):
                was = value if value is not None else (None if written.strip() in MISSING_MARKS else written)
                changes.append(Change(self.row, name, was, now))
                fields[column] = repr(now) if now != int(now) or abs(now) > 1e15 else str(int(now))
        self.output.changes(changes)
        return fields, bool(changes)

    def _line(self, fields: list[str]) -> str:
        made = io.StringIO()
        csv.writer(made, delimiter=self.dialect.delimiter, lineterminator="\n").writerow(fields)
        return made.getvalue()


def copy_csv(source: Path, rules: Rules, fills: dict[int, float], output: Output) -> None:
    table = CsvTable(source)
    cleaner = CsvCleaner(table.dialect, rules, fills, output)
    with open(source, "rb") as file, open(output.unfinished, "wb") as into:
        into.write(file.read(table.dialect.header_bytes))
        for part in table.parts():
            cleaner.block(part.key, into)
