"""What every format gives: a schema, parts that may be read beside each other, chunks of bounded size, errors as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

Array = npt.NDArray[Any]
PART_BYTES = (
    8 << 20
)  # what one thread holds at a time: some fit in the last-level cache, and a read this long is at full speed


class Unreadable(Exception):
    """A file, or the rest of it, cannot be read: what is wrong, and where."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason if offset is None else f"{reason} (at byte {offset:,})")
        self.offset = offset


class NeedsPackage(Exception):
    """A format whose library is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(f"{what} needs {package}: pip install 'holdfast[audit]' or pip install {package}")


@dataclass(frozen=True)
class Column:
    name: str
    dtype: str  # as the file has it


@dataclass(frozen=True)
class Schema:
    columns: tuple[Column, ...]
    row_shape: tuple[int, ...] | None = None  # of an array: what one row holds
    rows: int | None = None  # where the file says so before it is read


@dataclass(frozen=True)
class Numbers:
    """Elements × columns. An element's row is `row_of[element]`, or else `(first_element + element) // per_row`."""

    first_column: int
    values: Array
    per_row: int = 1
    first_element: int = 0
    row_of: Array | None = None
    missing: Array | None = None  # elements × columns: nulls, whatever stands in `values` there

    def row(self, element: int) -> int:
        if self.row_of is not None:
            return int(self.row_of[element])
        return (self.first_element + element) // self.per_row


@dataclass(frozen=True)
class Texts:
    """A column of text: an Arrow array, one element a row. `expects_numbers`: most of the column are numbers."""

    column: int
    values: Any
    expects_numbers: bool = False
    row_of: Array | None = None  # of each element, where rows between them could not be parsed


@dataclass(frozen=True)
class Trouble:
    """Something that is wrong with some rows and needs no statistics to see. `{count}` in its text is filled in."""

    id: str
    text: str
    rows: tuple[int, ...]  # within the chunk; the first ones
    count: int
    breaks_training: bool = True
    column: str = ""
    path: str = ""  # of one file of a set


@dataclass(frozen=True)
class Chunk:
    """Rows that stand one after the other; numbers of rows in it count from its first one."""

    rows: int
    blocks: tuple[Numbers | Texts, ...]
    row_bytes: Array | None = None  # rows × bytes, where one row is one piece: for finding duplicates
    troubles: tuple[Trouble, ...] = ()
    hashes: Array | None = None  # of each row, where the format has a better one than that of its columns
    tallies: dict[str, Counter[str]] = field(default_factory=dict)  # what is counted by name: classes, sizes, modes


@dataclass(frozen=True)
class Part:
    """A piece that one thread reads. Its rows follow those of the part before, or are other columns of the same rows."""

    key: Any
    bytes: int
    is_beside: bool = False


class Table(Protocol):
    """One array or table of a file. Iterating `parts` and reading them may happen in different threads."""

    path: Path
    member: str  # within a file that holds several
    format: str
    schema: Schema
    bytes: int  # to read, for the progress bar
    hashes_rows: bool  # its chunks have hashes of their own

    def parts(self) -> Iterator[Part]: ...

    def read(self, part: Part) -> Iterator[Chunk]: ...

    def close(self) -> None: ...


@runtime_checkable
class TellsSuspects(Protocol):
    """A table that knows of rows that they are finite before it has taken their values apart."""

    def read_suspects(self, part: Part) -> Iterator[Chunk]:
        """As `read` does it, but rows without anything that could break training come without their numbers and hashes."""


@dataclass
class Opened:
    """What is in a file: tables, and what could not be opened."""

    tables: list[Table] = field(default_factory=list)
    troubles: list[tuple[str, str]] = field(default_factory=list)  # member, reason
