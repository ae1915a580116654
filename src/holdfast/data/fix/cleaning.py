"""Every file in turn: what is in it, what stands in for the bad values, and its cleaned copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from holdfast.data.audit.across import FEATURES, LABELS
from holdfast.data.audit.tables import Gathered, Wanted, gathered
from holdfast.data.fix.array_files import ArrayTable, bad_rows, cleaned_rows, write_npy, write_npz, write_store
from holdfast.data.fix.fills import fills_for
from holdfast.data.fix.output import Output
from holdfast.data.fix.rules import CannotFix, Rules
from holdfast.data.formats import open_path
from holdfast.data.formats.contract import Array, Opened, Table, Unreadable
from holdfast.data.formats.unpacked import is_packed

ARRAYS = ("npy", "npz", "zarr", "hdf5")


@dataclass
class Cleaned:
    source: Path
    target: Path
    changed: int = 0
    dropped: int = 0
    was_there: bool = False
    refused: str = ""  # why there is no copy of it


@dataclass
class Cleaning:
    files: list[Cleaned] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not any(one.refused for one in self.files)


def clean(pairs: Sequence[tuple[Path, Path]], rules: Rules) -> Cleaning:
    """`pairs`: each file with the place of its copy."""
    sources = {source.resolve() for source, _ in pairs}
    for source, target in pairs:
        inside = [one for one in sources if target.resolve() == one or one in target.resolve().parents]
        if inside:
            raise CannotFix(f"{target} would be written over or into the input {source}; choose another folder")
    done = Cleaning()
    for source, target in pairs:
        output = Output(source, target, rules)
        one = Cleaned(source, target)
        done.files.append(one)
        if output.is_done():
            one.was_there = True
            continue
        try:
            _copy(source, rules, output, [other for other, _ in pairs])
        except Unreadable as error:
            one.refused = str(error)
            continue
        output.finish()
        one.changed, one.dropped = output.changed, output.dropped
    return done


def _copy(source: Path, rules: Rules, output: Output, beside: Sequence[Path]) -> None:
    opened = open_path(source)
    if opened.troubles and not (opened.tables and opened.tables[0].format in ("zarr", "hdf5")):
        raise Unreadable(opened.troubles[0][1])
    try:
        formats = {table.format for table in opened.tables}
        if formats & set(ARRAYS):
            _copy_arrays(source, opened, rules, output, beside)
        elif formats == {"images"}:
            from holdfast.data.fix.record_files import copy_images  # noqa: PLC0415 - needs Pillow

            output.open()
            copy_images(source, output)
        else:
            _copy_table(opened.tables[0], rules, output)
    finally:
        for table in opened.tables:
            table.close()


def _looked(table: Table) -> Gathered:
    found = gathered(table, Wanted(), lambda _: None)
    if found.unreadable:
        raise Unreadable(found.unreadable)
    return found


def _copy_table(table: Table, rules: Rules, output: Output) -> None:
    if is_packed(table.path):
        raise Unreadable("it is compressed, and a copy would not be: gunzip it first")
    fills = fills_for(table, _looked(table), rules)
    output.open()
    if table.format == "csv":
        from holdfast.data.fix.csv_files import copy_csv  # noqa: PLC0415 - needs pyarrow

        copy_csv(table.path, rules, fills, output)
    elif table.format in ("parquet", "arrow"):
        from holdfast.data.fix.arrow_files import copy_arrow, copy_parquet  # noqa: PLC0415 - needs pyarrow

        (copy_parquet if table.format == "parquet" else copy_arrow)(table.path, rules, fills, output)
    elif table.format == "tfrecord":
        from holdfast.data.fix.record_files import copy_tfrecord  # noqa: PLC0415 - needs google-crc32c

        copy_tfrecord(table.path, [column.name for column in table.schema.columns], rules, fills, output)
    else:
        raise Unreadable(f"a {table.format} file cannot be cleaned here")


def _copy_arrays(source: Path, opened: Opened, rules: Rules, output: Output, beside: Sequence[Path]) -> None:
    tables = [cast(ArrayTable, table) for table in opened.tables]
    fills = [fills_for(table, _looked(table), rules) for table in tables]
    companions = _companions(source, beside)
    try:
        marks = _rows_left_out(tables, rules, companions)
    finally:
        for companion in companions:
            companion.close()
    output.open()
    copies = []
    told: set[int] = set()
    for table, fill in zip(tables, fills, strict=True):
        left_out = marks[table.schema.rows or 0]
        rows = int((~left_out).sum())
        tells_rows = len(left_out) not in told
        told.add(len(left_out))
        copies.append((table, rows, cleaned_rows(table, rules, fill, left_out, output, tells_rows=tells_rows)))
    if tables[0].format == "npy":
        write_npy(output.unfinished, *copies[0])
    elif tables[0].format == "npz":
        written = []
        for number, copy in enumerate(copies):
            place = output.unfinished.with_name(f"{output.unfinished.name}.{number}")
            write_npy(place, *copy)
            written.append((copy[0].member, place))
        write_npz(output.unfinished, written)
    else:
        write_store(output.unfinished, tables[0].format, copies)


def _companions(source: Path, beside: Sequence[Path]) -> list[ArrayTable]:
    """x_train.npy loses the rows that y_train.npy loses, and the other way round."""
    for kind, other in ((FEATURES, LABELS), (LABELS, FEATURES)):
        if source.suffix == ".npy" and kind.match(source.stem):
            rest = kind.sub("", source.stem)
            return [
                cast(ArrayTable, open_path(path).tables[0])
                for path in beside
                if path.parent == source.parent
                and path.suffix == ".npy"
                and other.match(path.stem)
                and other.sub("", path.stem) == rest
            ]
    return []


def _rows_left_out(tables: Sequence[ArrayTable], rules: Rules, companions: Sequence[ArrayTable]) -> dict[int, Array]:
    """Of arrays with as many rows: the same rows."""
    marks: dict[int, Array] = {}
    for table in [*tables, *companions]:
        rows = table.schema.rows or 0
        known = marks.setdefault(rows, np.zeros(rows, bool))
        if rules.drop_rows or rules.labels is not None:
            known |= bad_rows(table, rules)
    return marks
