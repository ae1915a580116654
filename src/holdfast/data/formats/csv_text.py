"""CSV and its kin: blocks of whole lines, parsed by Arrow as numbers, and as text only where a column turns out not to be."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from holdfast.data.formats.arrow_columns import chunk_of, with_rows
from holdfast.data.formats.contract import PART_BYTES, Chunk, Column, Opened, Part, Schema, Texts, Trouble, Unreadable
from holdfast.data.formats.csv_proof import QUOTE, proof_of, proven
from holdfast.data.formats.unpacked import bytes_taken, open_unpacked
from holdfast.data.formats.written_numbers import MISSING_MARKS, missing_mask, parsed

DELIMITERS = ",\t;|"
BLOCK_BYTES = PART_BYTES // 2
LONGEST_LINE = 64 << 20
FIRST_BYTES = 1 << 20  # from which the columns are learnt
NUMBERS_MEANT = 0.5  # of what is no missing mark
ROWS_NAMED = 20
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
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
    if start.startswith(UTF_16):
        raise Unreadable("it is UTF-16; save it as UTF-8")
    if b"\r" in start and b"\n" not in start:
        raise Unreadable("its lines end with carriage returns alone; save it with line feeds", start.index(b"\r"))
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
    try:
        first = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise Unreadable(f"it cannot be parsed: {error}") from None
    has_header = not any(_is_number(word) for word in first) and any(word.strip() for word in first)
    names = tuple(word.strip() or str(number) for number, word in enumerate(first))
    if not has_header:
        names = tuple(map(str, range(len(first))))
    header = _header_bytes(text) + mark if has_header else mark
    body = text[len(start[mark:header].decode()) :].encode()
    return Dialect(delimiter, names, header, _meant_as_numbers(body, delimiter, len(names)))


def dialect_of_file(path: Path) -> Dialect:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    with open_unpacked(path) as file:
        return dialect_of(file.read(FIRST_BYTES), ".tsv" if ".tsv" in suffixes[-2:] else ".csv")


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


def _parsed(
    block: bytes, delimiter: str, types: list[Any], wanted: Sequence[int] | None = None
) -> tuple[Any, list[tuple[int, int]]]:
    """The table, and for each row that has another number of fields its place among the lines and that number."""
    names = [f"f{number}" for number in range(len(types))]
    odd: list[tuple[int, int]] = []

    def note(row: Any) -> str:
        odd.append((row.number or 0, row.actual_columns))
        return "skip"

    if not block or block.isspace():
        return pa.schema(list(zip(names, types, strict=True))).empty_table(), odd
    table = pc.read_csv(
        pa.BufferReader(block),
        pc.ReadOptions(use_threads=False, column_names=names, block_size=max(len(block) + 1, 1 << 16)),
        pc.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block, invalid_row_handler=note),
        pc.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            include_columns=None if wanted is None else [names[number] for number in wanted],
            null_values=list(MISSING_MARKS),
            strings_can_be_null=False,
        ),
    )
    return table, odd


class CsvTable:
    format, member, hashes_rows = "csv", "", False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dialect = dialect_of_file(path)
        self.bytes = path.stat().st_size
        self._proof = proof_of(self.dialect.delimiter, self.dialect.numbers)
        kinds = ("number" if meant else "text" for meant in self.dialect.numbers)
        self.schema = Schema(tuple(map(Column, self.dialect.names, kinds)), None, None)

    def parts(self) -> Iterator[Part]:
        """Read in order, since only from the start it is known which line breaks stand in quotes."""
        taken = 0
        with open_unpacked(self.path) as file:
            file.read(self.dialect.header_bytes)
            rest, buffer = b"", bytearray(BLOCK_BYTES)
            while True:
                length = file.readinto(buffer)
                more = memoryview(buffer)[:length]
                if not more and rest.count(QUOTE) % 2:
                    raise Unreadable("a quote in it is never closed", file.tell() - len(rest) + rest.index(QUOTE))
                cut = _last_line_end(rest, buffer, length)
                if cut or (rest and not more):
                    block = b"".join((rest, more[:cut]))
                    before, taken = taken, bytes_taken(file)
                    yield Part(block, taken - before)
                    rest = b""
                rest += more[cut:]
                if not more:
                    return
                if len(rest) > LONGEST_LINE:
                    raise Unreadable(
                        f"a line is longer than {LONGEST_LINE >> 20} MiB, or a quote is never closed", file.tell()
                    )

    def read(self, part: Part) -> Iterator[Chunk]:
        yield self._chunk(part.key)

    def read_suspects(self, part: Part) -> Iterator[Chunk]:
        """Parsed is only what its form does not prove, and text."""
        block = part.key
        texts = [number for number, is_number in enumerate(self.dialect.numbers) if not is_number]
        for is_proven, begin, end in proven(block, self._proof) if self._proof else [(False, 0, len(block))]:
            if is_proven and not texts:
                yield Chunk(block.count(b"\n", begin, end), ())
            else:
                yield self._texts_alone(block[begin:end], texts) if is_proven else self._chunk(block[begin:end])

    def _texts_alone(self, lines: bytes, texts: Sequence[int]) -> Chunk:
        try:
            table, _ = _parsed(lines, self.dialect.delimiter, [pa.string()] * len(self.dialect), texts)
        except pa.ArrowInvalid:
            return self._chunk(lines)  # which says what is wrong
        columns = [table.column(place).combine_chunks().cast(pa.large_string()) for place in range(len(texts))]
        return Chunk(table.num_rows, tuple(map(Texts, texts, columns)))

    def _chunk(self, lines: bytes) -> Chunk:
        types: list[Any] = [pa.float64() if meant else pa.string() for meant in self.dialect.numbers]
        while True:
            try:
                table, odd = _parsed(lines, self.dialect.delimiter, types)
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
        return replace(chunk, troubles=_ragged(odd, len(self.dialect)))

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


def _last_line_end(before: bytes, buffer: bytearray, length: int) -> int:
    """In the buffer, after the last line break outside quotes; 0 when there is none. What stands before it begins outside of them."""
    if QUOTE not in before and buffer.find(QUOTE, 0, length) < 0:
        return buffer.rfind(b"\n", 0, length) + 1
    as_bytes = np.frombuffer(buffer, np.uint8, length)
    ends, quotes = np.flatnonzero(as_bytes == ord("\n")), np.flatnonzero(as_bytes == ord(QUOTE))
    outside = ends[(np.searchsorted(quotes, ends) + before.count(QUOTE)) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def open_tables(path: Path) -> Opened:
    return Opened(tables=[CsvTable(path)])
