"""A table that is printed row by row, and put into a page between two marks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    good: bool
    cells: tuple[str, ...]
    note: str = ""  # printed below a row: what a failure said last


class Table:
    def __init__(self, name: str, headings: tuple[str, ...], named_by: int = 2) -> None:
        self._name = name
        self._named_by = named_by  # so many cells
        self._rows: list[Row] = []
        self._headings = headings

    def fill(self, rows: Iterable[Row]) -> int:
        """Prints each as it comes; returns how many were bad."""
        print(_line(self._headings), _line(("---",) * len(self._headings)), sep="\n", flush=True)
        for row in rows:
            self._rows.append(row)
            print(_line(row.cells), "" if row.good else "  <--", flush=True)
            if row.note:
                print(row.note, flush=True)
        return sum(not row.good for row in self._rows)

    def write(self, page: Path) -> None:
        """Rows that were measured anew take the place of the old ones."""
        begin, end = f"<!-- lab.oom: {self._name} -->\n", "<!-- end -->\n"
        before, found, rest = page.read_text().partition(begin)
        if not found:
            raise SystemExit(f"{page} has no {begin.strip()}")
        old, _, after = rest.partition(end)
        measured = [_line(row.cells) for row in self._rows]
        rows = {self._key(line): line for line in [*old.splitlines()[2:], *measured]}
        lines = [_line(self._headings), _line(("---",) * len(self._headings)), *rows.values()]
        page.write_text(before + begin + "\n".join(lines) + "\n" + end + after)

    def _key(self, line: str) -> tuple[str, ...]:
        return tuple(line.split(" | ")[: self._named_by])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
