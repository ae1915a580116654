"""Rules of the user's own: a pandera schema from a Python file, held against each table in pieces."""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.data.audit.columns import PLACES
from holdfast.data.audit.report import Finding
from holdfast.data.formats import format_of
from holdfast.data.formats.contract import NeedsPackage

PIECE_ROWS = 1 << 17
TABLES = ("csv_text", "parquet", "arrow_ipc")
KINDS = {
    "dtype": "dtype",
    "not_nullable": "non-finite",
    "column_in_dataframe": "shape",
}  # of pandera's own checks; others are ranges


OWN_ERRORS = (ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, KeyError, OSError)


class NoRules(Exception):
    """The file cannot be used: why, in one line."""


class OwnRules:
    """What holds for a whole table, such as that values are unique, is looked at within pieces of 131,072 rows."""

    def __init__(self, file: Path) -> None:
        try:
            import pandera.pandas as pandera  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            raise NeedsPackage("rules of your own", "pandera[pandas]") from None
        self._errors = pandera.errors.SchemaErrors
        self._name = file.name
        if not file.is_file():
            raise NoRules(f"{file}: there is no such file with rules")
        try:
            found = runpy.run_path(str(file))
        except OWN_ERRORS as error:
            raise NoRules(f"{file} fails: {type(error).__name__}: {error}") from None
        schemas = [one for one in found.values() if isinstance(one, pandera.DataFrameSchema)]
        models = [one for one in found.values() if isinstance(one, type) and issubclass(one, pandera.DataFrameModel)]
        schemas += [one.to_schema() for one in models if one is not pandera.DataFrameModel]
        if len(schemas) != 1:
            raise NoRules(f"{file} has {len(schemas)} pandera schemas at its top level; one is needed")
        self._schema = schemas[0]

    def findings(self, files: Sequence[Path]) -> Iterator[Finding]:
        for path in files:
            if format_of(path) in TABLES:
                yield from self._findings_of(path)

    def _findings_of(self, path: Path) -> Iterator[Finding]:
        counts: dict[tuple[str, str], int] = {}
        places: dict[tuple[str, str], list[int]] = {}
        examples: dict[tuple[str, str], str] = {}
        for first, frame in _pieces(path):
            for case in self._broken(frame):
                rule = str(case["check"])
                named = case["failure_case"] if rule == "column_in_dataframe" else case["column"]
                column = "" if named is None else str(named)
                key = column, rule
                if first and rule.startswith(("dtype", "column_in")):
                    continue  # told by the first piece
                counts[key] = counts.get(key, 0) + 1
                examples.setdefault(key, str(case["failure_case"])[:40])
                if case["index"] is not None and case["index"] == case["index"]:
                    places.setdefault(key, []).append(first + int(case["index"]))
        for (column, rule), count in counts.items():
            kind = next((id for begin, id in KINDS.items() if rule.startswith(begin)), "range")
            where = tuple(sorted(places.get((column, rule), []))[:PLACES])
            said = f"the rule {rule} of {self._name} does not hold: {count:,}, as {examples[column, rule]}"
            yield Finding(kind, str(path), column, count, where, True, said)

    def _broken(self, frame: Any) -> list[dict[str, Any]]:
        try:
            self._schema.validate(frame, lazy=True)
        except self._errors as error:
            return list(error.failure_cases.to_dict("records"))
        return []


def _pieces(path: Path) -> Iterator[tuple[int, Any]]:
    """The number of the first row of each, and its rows as a DataFrame."""
    first = 0
    for frame in _csv(path) if format_of(path) == "csv_text" else _arrow(path):
        yield first, frame.reset_index(drop=True)
        first += len(frame)


def _csv(path: Path) -> Iterator[Any]:
    import pandas  # noqa: PLC0415 - comes with pandera

    from holdfast.data.formats.csv_text import dialect_of_file  # noqa: PLC0415
    from holdfast.data.formats.unpacked import open_unpacked  # noqa: PLC0415

    with open_unpacked(path) as file:
        delimiter = dialect_of_file(path).delimiter
        yield from pandas.read_csv(file, sep=delimiter, chunksize=PIECE_ROWS, on_bad_lines="skip")


def _arrow(path: Path) -> Iterator[Any]:
    from pyarrow import feather, parquet  # noqa: PLC0415

    if format_of(path) == "parquet":
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(PIECE_ROWS):
                yield batch.to_pandas()
    else:
        for batch in feather.read_table(path, memory_map=True).to_batches(PIECE_ROWS):
            yield batch.to_pandas()
