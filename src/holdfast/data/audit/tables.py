"""All that is gathered of one table, part by part, in several threads, merged in the order of the rows."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from holdfast.data.audit.columns import PLACES, Columns
from holdfast.data.audit.duplicates import LEAST_BYTES, Hashes, RowHash, scrambled
from holdfast.data.audit.labels import Labels
from holdfast.data.audit.row_hashes import sums_of_blocks
from holdfast.data.audit.texts import TextColumn
from holdfast.data.formats.contract import Array, Chunk, Numbers, Part, Table, TellsSuspects, Trouble, Unreadable

MOST_THREADS = 16
Progress = Callable[[int], None]  # bytes that were read


@dataclass(frozen=True)
class Wanted:
    """What to look for beyond the numbers themselves."""

    labels: str | None = None
    classes: int | None = None
    is_quick: bool = False  # only what breaks training


@dataclass
class Gathered:
    columns: Columns
    hashes: Hashes | None
    labels: Labels | None
    sums: list[Array] = field(
        default_factory=list
    )  # of hashes of columns, before other columns of these rows were seen
    texts: dict[int, TextColumn] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    tallies: dict[str, Counter[str]] = field(default_factory=dict)
    unreadable: str = ""  # why the rest of it could not be read

    @classmethod
    def of(cls, table: Table, wanted: Wanted) -> Gathered:
        label = label_column(table, wanted.labels)
        return cls(
            Columns(len(table.schema.columns), is_quick=wanted.is_quick),
            Hashes.for_rows(table.schema.rows) if not wanted.is_quick and _may_repeat(table) else None,
            None if label is None else Labels(label, wanted.classes),
        )

    def look(self, chunk: Chunk, row_hash: RowHash | None) -> None:
        """Rows in what is gathered here count from the first row of this chunk: it is merged afterwards."""
        for block in chunk.blocks:
            numbers: Numbers | None = block if isinstance(block, Numbers) else None
            if not isinstance(block, Numbers):
                numbers = self.texts.setdefault(block.column, TextColumn(block.column)).look(block)
            if numbers is not None:
                self.columns.look(numbers)
                if self.labels is not None:
                    self.labels.look(numbers)
        if self.hashes is not None and chunk.rows:
            if chunk.hashes is not None:
                self.hashes.add(chunk.hashes)
            elif row_hash is not None and chunk.row_bytes is not None:
                self.hashes.add(row_hash(chunk.row_bytes))
            elif row_hash is None:
                self.sums.append(sums_of_blocks(chunk))
        self.troubles += chunk.troubles
        self.tallies = chunk.tallies
        self.columns.rows += chunk.rows
        if self.labels is not None:
            self.labels.rows += chunk.rows

    def merge(self, later: Gathered) -> None:
        self._merge_troubles(later.troubles)
        for name, counts in later.tallies.items():
            self.tallies.setdefault(name, Counter()).update(counts)
        for column, text in later.texts.items():
            known = self.texts.setdefault(column, TextColumn(column))
            known.rows = self.columns.rows  # it may have been all numbers for a while
            known.merge(text)
        if self.hashes is not None and later.hashes is not None:
            self.hashes.merge(later.hashes)
        if self.labels is not None and later.labels is not None:
            self.labels.merge(later.labels)
        self.columns.merge(later.columns)

    def merge_beside(self, other: Gathered) -> None:
        """Other columns of the same rows."""
        if other.sums:
            own = np.concatenate(self.sums) if self.sums else np.uint64(0)
            self.sums = [own + np.concatenate(other.sums)]
        self.texts |= other.texts
        self.troubles += other.troubles
        self.unreadable = self.unreadable or other.unreadable
        if self.labels is not None and other.labels is not None:
            self.labels.merge(other.labels, is_beside=True)
        self.columns.merge(other.columns, is_beside=True)

    def close(self) -> None:
        """All columns of these rows are here."""
        if self.sums and self.hashes is not None:
            self.hashes.add(scrambled(np.concatenate(self.sums)))
            self.sums = []

    def count_numbers_elsewhere(self) -> None:
        """In a column of numbers those of blocks without text count, too: they say how seldom its words are."""
        shifted = sum(trouble.count for trouble in self.troubles if trouble.id == "shape" and not trouble.column)
        for column, text in self.texts.items():
            if text.is_among_numbers:
                text.numbers = self.columns.rows - shifted - int(self.columns.missing[column])

    def _merge_troubles(self, later: list[Trouble]) -> None:
        for trouble in later:
            moved = tuple(row + self.columns.rows for row in trouble.rows)
            for index, known in enumerate(self.troubles):
                if replace(known, rows=(), count=0) == replace(trouble, rows=(), count=0):
                    rows, count = (*known.rows, *moved)[:PLACES], known.count + trouble.count
                    self.troubles[index] = replace(known, rows=rows, count=count)
                    break
            else:
                self.troubles.append(replace(trouble, rows=moved))


def label_column(table: Table, named: str | None) -> int | None:
    """By name, or by number, from the end when it is negative."""
    if named is None:
        return None
    names = [column.name for column in table.schema.columns]
    if named in names:
        return names.index(named)
    if table.member == named and len(names) == 1:
        return 0
    try:
        number = int(named)
    except ValueError:
        return None
    return number % len(names) if len(names) > 1 and -len(names) <= number < len(names) else None


def _may_repeat(table: Table) -> bool:
    """One column that repeats itself is no sign of anything."""
    if table.schema.row_shape is None:
        return table.hashes_rows or len(table.schema.columns) > 2
    return _row_bytes(table) >= LEAST_BYTES


def _row_bytes(table: Table) -> int:
    rows = table.schema.rows or 0
    return table.bytes // rows if rows else 0


def gathered(table: Table, wanted: Wanted, progress: Progress) -> Gathered:
    """Reads all of it. A part that cannot be read ends it: what came before counts."""
    whole = Gathered.of(table, wanted)
    row_hash = RowHash(_row_bytes(table)) if whole.hashes is not None and table.schema.row_shape is not None else None

    read = table.read
    if wanted.is_quick and whole.labels is None and isinstance(table, TellsSuspects):
        read = table.read_suspects

    def look_at(part: Part) -> Gathered:
        pieces = Gathered.of(table, wanted)
        try:
            for chunk in read(part):
                piece = Gathered.of(table, wanted)
                piece.columns.known = whole.columns
                piece.look(chunk, row_hash)
                pieces.sums += piece.sums
                pieces.merge(piece)
        except Unreadable as error:
            pieces.unreadable = str(error)
        return pieces

    rows: Gathered | None = None  # whose columns are not all there yet
    try:
        for part, pieces in _side_by_side(table.parts(), look_at):
            if part.is_beside and rows is not None:
                rows.merge_beside(pieces)
            else:
                _take_in(whole, rows)
                rows = pieces
            progress(part.bytes)
            if pieces.unreadable:
                raise Unreadable(pieces.unreadable)
    except Unreadable as error:
        whole.unreadable = str(error)
    _take_in(whole, rows)
    whole.count_numbers_elsewhere()
    return whole


def _take_in(whole: Gathered, rows: Gathered | None) -> None:
    if rows is not None:
        rows.close()
        whole.merge(rows)


def _side_by_side(parts: Iterator[Part], look_at: Callable[[Part], Gathered]) -> Iterator[tuple[Part, Gathered]]:
    """In order; two parts for each thread are under way, so that none waits and little is held."""
    threads = min(MOST_THREADS, len(os.sched_getaffinity(0)))
    waiting: deque[tuple[Part, Future[Gathered]]] = deque()
    pool = ThreadPoolExecutor(threads)
    ended: Unreadable | None = None
    try:
        while True:
            try:
                part = next(parts, None)
            except Unreadable as error:  # what was read before it counts
                part, ended = None, error
            if part is not None:
                waiting.append((part, pool.submit(look_at, part)))
            while waiting and (part is None or len(waiting) >= 2 * threads):
                done, future = waiting.popleft()
                yield done, future.result()
            if part is None:
                break
        if ended is not None:
            raise ended
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
