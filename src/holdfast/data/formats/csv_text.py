"""CSV and its kin: blocks of whole lines, parsed by Arrow as numbers, and as text only where a column turns out not to be."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from holdfast.data.formats.arrow_columns import chunk_of, with_rows
from holdfast.data.formats.contract import PART_BYTES, Chunk, Column, Opened, Part, Schema, Trouble, Unreadable
from holdfast.data.formats.written_numbers import MISSING_MARKS, missing_mask, parsed

DELIMITERS = ",\t;|"
BLOCK_BYTES = PART_BYTES // 2
LONGEST_LINE = 64 << 20
FIRST_BYTES = 1 << 20  # from which the columns are learnt
NUMBERS_MEANT = 0.5  # of what is no missing mark
ROWS_NAMED = 20
FAILED_COLUMN = re.compile(r"In CSV column #(\d+)")


@dataclass(frozen=True)
class Dialect:
    delimiter: str
    names: tuple[str, ...]
    header_bytes: int  # with the byte order mark
    numbers: tuple[bool, ...]  # of each column: whether it is meant to be numbers

    def __len__(self) -> int:
        return len(self.names)


def dialect_of(start: bytes, suffix: str) -> Dialect:
    mark = 3 if start.startswith(b"\xef\xbb\xbf") else 0
    if b"\0" in start[:4096]:
        raise Unreadable("it is no text: it has zero bytes", start.index(b"\0"))
    try:
        text = start[mark:].decode()
    except UnicodeDecodeError as error:
        if error.start < len(start) - mark - 4:
            raise Unreadable("it is not UTF-8; save it as that", mark + error.start) from None
        text = start[mark : mark + error.start].decode()
    lines = text.splitlines(keepends=True)
    if not lines or not text.strip():
        raise Unreadable("it is empty")
    delimiter = "\t" if suffix == ".tsv" else max(DELIMITERS, key=_outside_quotes(lines[0]).count)
    first = next(csv.reader(io.StringIO(text), delimiter=delimiter))
    has_header = not any(_is_number(word) for word in first) and any(word.strip() for word in first)
    names = tuple(word.strip() or str(number) for number, word in enumerate(first))
    if not has_header:
        names = tuple(map(str, range(len(first))))
    header = _header_bytes(text) + mark if has_header else mark
    body = text[len(start[mark:header].decode()) :].encode()
    return Dialect(delimiter, names, header, _meant_as_numbers(body, delimiter, len(names)))


def _outside_quotes(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _header_bytes(text: str) -> int:
    """A name in quotes may have a line break in it."""
    stream = io.StringIO(text, newline="")
    taken: list[str] = []
    for line in stream:
        taken.append(line)
        if "".join(taken).count('"') % 2 == 0:
            break
    return len("".join(taken).encode())


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _meant_as_numbers(body: bytes, delimiter: str, width: int) -> tuple[bool, ...]:
    cut = body.rfind(b"\n") + 1
    table, _ = _parsed(body[:cut] or body, delimiter, [pa.string()] * width)
    meant = []
    for column in table.columns:
        values = column.combine_chunks().cast(pa.large_string())
        present = int((~missing_mask(values)).sum())
        _, is_number = parsed(values)
        meant.append(present > 0 and int(is_number.sum()) >= NUMBERS_MEANT * present)
    return tuple(meant)


def _parsed(block: bytes, delimiter: str, types: list[Any]) -> tuple[Any, list[tuple[int, int]]]:
    """The table, and for each row that has another number of fields its place among the lines and that number."""
    names = [f"f{number}" for number in range(len(types))]
    odd: list[tuple[int, int]] = []

    def note(row: Any) -> str:
        odd.append((row.number or 0, row.actual_columns))
        return "skip"

    if not block or block.isspace():
        return pa.table([pa.array([], type=kind) for kind in types], names=names), odd
    table = pc.read_csv(
        pa.BufferReader(block),
        pc.ReadOptions(use_threads=False, column_names=names, block_size=max(len(block) + 1, 1 << 16)),
        pc.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block, invalid_row_handler=note),
        pc.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            null_values=list(MISSING_MARKS),
            strings_can_be_null=False,
        ),
    )
    return table, odd


class CsvTable:
    format, member, hashes_rows = "csv", "", False

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.dialect = dialect_of(file.read(FIRST_BYTES), path.suffix.lower())
        self.bytes = path.stat().st_size
        kinds = ("number" if meant else "text" for meant in self.dialect.numbers)
        self.schema = Schema(tuple(map(Column, self.dialect.names, kinds)), None, None)

    def parts(self) -> Iterator[Part]:
        """Read in order, since only from the start it is known which line breaks stand in quotes."""
        with open(self.path, "rb") as file:
            file.seek(self.dialect.header_bytes)
            rest = b""
            while True:
                more = file.read(BLOCK_BYTES)
                block = rest + more
                cut = _last_line_end(block) if more else len(block)
                if not more and block.count(b'"') % 2:
                    raise Unreadable("a quote in it is never closed", file.tell() - len(block) + block.index(b'"'))
                if cut:
                    yield Part(block[:cut], cut)
                rest = block[cut:]
                if not more:
                    return
                if len(rest) > LONGEST_LINE:
                    raise Unreadable(
                        f"a line is longer than {LONGEST_LINE >> 20} MiB, or a quote is never closed", file.tell()
                    )

    def read(self, part: Part) -> Iterator[Chunk]:
        types: list[Any] = [pa.float64() if meant else pa.string() for meant in self.dialect.numbers]
        while True:
            try:
                table, odd = _parsed(part.key, self.dialect.delimiter, types)
                break
            except pa.ArrowInvalid as error:
                column = FAILED_COLUMN.search(str(error))
                if column is None or types[int(column[1])] == pa.string():
                    raise Unreadable(f"it cannot be parsed: {str(error).splitlines()[0][:160]}") from None
                types[int(column[1])] = pa.string()  # something in it is no number: what, is looked at as text
        batch = table.combine_chunks().to_batches()
        chunk = chunk_of(batch[0], 0, self.dialect.numbers) if batch else Chunk(0, ())
        if odd:
            rows = chunk.rows + len(odd)
            skipped = [line - 1 for line, _ in odd]
            chunk = with_rows(chunk, np.delete(np.arange(rows), skipped), rows)
        yield replace(chunk, troubles=_ragged(odd, len(self.dialect)))

    def close(self) -> None:
        pass


def _ragged(odd: list[tuple[int, int]], width: int) -> tuple[Trouble, ...]:
    found = []
    for word, lines in (
        ("fewer", [line for line, fields in odd if fields < width]),
        ("more", [line for line, fields in odd if fields > width]),
    ):
        if lines:
            text = f"rows with {word} fields than the {width} columns, so values are shifted: {{count}}"
            found.append(Trouble("shape", text, tuple(line - 1 for line in lines[:ROWS_NAMED]), len(lines)))
    return tuple(found)


def _last_line_end(block: bytes) -> int:
    """After the last line break that stands outside quotes; 0 when there is none. The block begins outside of them."""
    end = block.rfind(b"\n") + 1
    if block.count(b'"') == 0 or not end:
        return end
    as_bytes = np.frombuffer(block, np.uint8)
    open_quotes = np.cumsum(as_bytes == ord('"')) % 2
    ends = np.flatnonzero((as_bytes == ord("\n")) & (open_quotes == 0))
    return int(ends[-1]) + 1 if len(ends) else 0


def open_tables(path: Path) -> Opened:
    return Opened(tables=[CsvTable(path)])
