"""CSV and Parquet by pyarrow, in pieces. A file is read from the beginning of a chunk on, so a reader keeps its place in it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.stream.csv_index import CsvChunk, chunks_of
from holdfast.data.stream.npy_files import stamp
from holdfast.data.stream.source import Arrays, CannotStream, Column

PIECE_ROWS = 8192  # of a row group that are decoded at once
Pieces = Callable[[int], Iterator[Any]]  # record batches of a chunk, from its first row on


def pyarrow_for(path: Path) -> Any:
    try:
        import pyarrow  # noqa: PLC0415
    except ImportError:
        raise CannotStream(f"{path} is read with pyarrow: pip install 'holdfast[data]'") from None
    return pyarrow


class TableReader:
    def __init__(self, pieces: Pieces, where: str) -> None:
        self._pieces, self._where = pieces, where
        self._chunk, self._row = -1, 0
        self._iterator: Iterator[Any] = iter(())
        self._piece: Any = None
        self._at = 0  # in the piece

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        if chunk != self._chunk or begin < self._row:
            self._chunk, self._row, self._iterator, self._piece = chunk, 0, self._pieces(chunk), None
        self._go_through(begin - self._row, None)
        self._go_through(len(next(iter(out.values()))), out)

    def _go_through(self, rows: int, out: Arrays | None) -> None:
        done = 0
        while done < rows:
            if self._piece is None or self._at >= self._piece.num_rows:
                self._piece, self._at = next(self._iterator, None), 0
                if self._piece is None:
                    raise CannotStream(f"{self._where} has fewer rows than it had when it was opened")
            count = min(rows - done, self._piece.num_rows - self._at)
            if out is not None:
                part = self._piece.slice(self._at, count)
                for name, array in out.items():
                    array[done : done + count] = as_numpy(part.column(name), self._where, name)
            self._at, self._row, done = self._at + count, self._row + count, done + count


def as_numpy(values: Any, where: str, name: str) -> np.ndarray[Any, Any]:
    """Missing numbers become NaN, and lists of the same length become rows."""
    import pyarrow  # noqa: PLC0415

    if pyarrow.types.is_fixed_size_list(values.type):
        return np.asarray(values.flatten().to_numpy(zero_copy_only=False)).reshape(len(values), -1)
    if pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        return np.asarray(values.to_numpy(zero_copy_only=False))
    except (pyarrow.ArrowInvalid, NotImplementedError) as error:
        raise CannotStream(f"the column {name} of {where} cannot be made an array: {error}") from None


def column_of(field: Any, where: str) -> Column:
    import pyarrow  # noqa: PLC0415

    kind = field.type
    shape: tuple[int, ...] = ()
    if pyarrow.types.is_fixed_size_list(kind):
        kind, shape = kind.value_type, (kind.list_size,)
    if pyarrow.types.is_list(kind) or pyarrow.types.is_struct(kind):
        raise CannotStream(
            f"the column {field.name} of {where} has rows of several lengths: leave it out with columns="
        )
    try:
        dtype = np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        dtype = np.dtype(object)
    return Column(field.name, shape, dtype if dtype.kind in "biufM" else np.dtype(object))


class ParquetRows:
    def __init__(self, path: Path, columns: Sequence[str] | None) -> None:
        pyarrow = pyarrow_for(path)
        self._path = path
        try:
            file = _parquet_file(path)
        except pyarrow.ArrowInvalid as error:
            raise CannotStream(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
        with file:
            schema, found = file.schema_arrow, file.metadata
            names = [name for name in schema.names if columns is None or name in columns]
            self._with_nulls = _null_counts(found)
            self.columns = tuple(_widened(column_of(schema.field(name), str(path)), self._with_nulls) for name in names)
            groups = [found.row_group(number).num_rows for number in range(found.num_row_groups)]
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = np.array(groups, np.int64)

    def likeness(self) -> str:
        return stamp(self._path)

    def reader(self) -> TableReader:
        return TableReader(self._pieces, str(self._path))

    def _pieces(self, chunk: int) -> Iterator[Any]:
        with _parquet_file(self._path) as file:
            names = [column.name for column in self.columns]
            yield from file.iter_batches(PIECE_ROWS, row_groups=[chunk], columns=names, use_threads=False)


def _parquet_file(path: Path) -> Any:
    from pyarrow import parquet  # noqa: PLC0415

    return parquet.ParquetFile(
        path, pre_buffer=False
    )  # which would hold a whole row group beside what is decoded of it


def _null_counts(metadata: Any) -> frozenset[str]:
    """Columns that have missing values, or may have."""
    found = set()
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if column.statistics is None or column.statistics.null_count is None or column.statistics.null_count:
                found.add(column.path_in_schema.split(".")[0])
    return frozenset(found)


def _widened(column: Column, with_nulls: frozenset[str]) -> Column:
    """A whole number has no NaN: where some are missing they are floats, as pyarrow gives them."""
    if column.dtype.kind in "iub" and column.name in with_nulls and not column.shape:
        return Column(column.name, column.shape, np.dtype(object if column.dtype.kind == "b" else np.float64))
    return column


class CsvRows:
    def __init__(self, path: Path, columns: Sequence[str] | None, delimiter: str, labels: str = "") -> None:
        pyarrow_for(path)
        self._path, self._delimiter = path, delimiter
        self._chunks = chunks_of(path)
        if not self._chunks:
            raise CannotStream(f"{path} has no rows")
        self._names: list[str] | None = None
        self._types: Any = {}
        first = next(self._pieces(0))
        self._names = [str(name) for name in first.schema.names]
        found = {field.name: column_of(field, str(path)) for field in first.schema}
        # A column that holds whole numbers at first may have fractions, or gaps, further on; labels are classes, and may not.
        self.columns = tuple(
            Column(name, (), np.dtype(np.float64) if one.dtype.kind in "iu" and name != labels else one.dtype)
            for name, one in found.items()
            if columns is None or name in columns
        )
        self._types = {column.name: _arrow_type(column) for column in self.columns}
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = np.array(
            [chunk.rows for chunk in self._chunks], np.int64
        )

    def likeness(self) -> str:
        return stamp(self._path)

    def reader(self) -> TableReader:
        return TableReader(self._pieces, str(self._path))

    def _pieces(self, chunk: int) -> Iterator[Any]:
        import pyarrow  # noqa: PLC0415
        from pyarrow import csv  # noqa: PLC0415

        place = self._chunks[chunk]
        with self._path.open("rb") as file:
            header = file.readline() if self._names is None else b""
            file.seek(place.begin)
            data = header + file.read(place.end - place.begin)
        try:
            table = csv.read_csv(
                io.BytesIO(data),
                read_options=csv.ReadOptions(use_threads=False, column_names=self._names, block_size=max(1, len(data))),
                parse_options=csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(column_types=self._types, include_columns=list(self._types)),
            )
        except pyarrow.ArrowInvalid as error:
            raise CannotStream(f"{self._path}, {_rows_of(self._chunks, chunk)}: {str(error).splitlines()[0]}") from None
        yield from table.to_batches()


def _rows_of(chunks: Sequence[CsvChunk], chunk: int) -> str:
    first = sum(one.rows for one in chunks[:chunk])
    return f"rows {first} to {first + chunks[chunk].rows - 1}"


def _arrow_type(column: Column) -> Any:
    import pyarrow  # noqa: PLC0415

    return pyarrow.string() if column.dtype.hasobject else pyarrow.from_numpy_dtype(column.dtype)
