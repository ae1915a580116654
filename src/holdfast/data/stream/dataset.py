"""`holdfast.data.open(…)`: batches of data that need not fit in memory, in an order that can be found again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from holdfast.data.stream.ahead import Ahead
from holdfast.data.stream.batch_form import BatchForm, SideBySide, chosen
from holdfast.data.stream.budget import sizes
from holdfast.data.stream.joined import Beside
from holdfast.data.stream.opening import Opened, opened
from holdfast.data.stream.order import Order
from holdfast.data.stream.source import CannotStream, Column, Source

LABELS = "labels"
LARGEST_SEED = 2**31 - 1


def open_data(
    data: Any,
    *,
    batch: int = 32,
    shuffle: bool = False,
    seed: int | None = None,
    columns: Sequence[str] | None = None,
    labels: Any = None,
    budget: int | str | None = None,
    drop_last: bool = False,
    image_size: tuple[int, int] | None = None,
) -> Dataset:
    """`labels` is a column's name, or a file or array of its own. `budget` is the memory that all of it may use ("500M").
    `image_size`: height and width to which the images of a folder are brought."""
    if batch < 1:
        raise CannotStream("batch must be at least 1")
    if seed is None:  # of NumPy's own sequence, which a script can seed and which is put back in a next attempt
        seed = int(np.random.randint(LARGEST_SEED)) if shuffle else 0
    source, form = _formed(data, columns, labels, image_size)
    if not sum(source.chunk_rows):
        raise CannotStream(f"{_told(data)} has no rows")
    return Dataset(source, form, budget, batch=batch, shuffle=shuffle, seed=seed, drop_last=drop_last)


def _formed(
    data: Any, columns: Sequence[str] | None, labels: Any, image_size: tuple[int, int] | None
) -> tuple[Source, BatchForm]:
    by_column = isinstance(labels, str) and columns is not None and labels not in columns
    wanted = [*columns, labels] if columns is not None and by_column else columns
    found = opened(data, wanted, labels if isinstance(labels, str) else "", image_size)
    names = [column.name for column in found.source.columns]
    if labels is None:
        wanted = chosen(found.source.columns, columns, _told(data))
        return found.source, BatchForm(_picked(found.source, wanted), found.is_named, None)
    if isinstance(labels, str) and (labels in names or not _is_file(labels)):
        if not found.is_named:
            raise CannotStream(f"{_told(data)} has no columns, and {labels} is no file with labels")
        chosen(found.source.columns, [labels], _told(data))
        wanted = [name for name in chosen(found.source.columns, columns, _told(data)) if name != labels]
        if not wanted:
            raise CannotStream(f"{_told(data)} has no column beside the labels")
        return _with_labels(found, wanted, labels)
    beside = opened(labels, None).source
    if len(beside.columns) != 1:
        raise CannotStream(f"{_told(labels)} has several columns; give the labels as one array")
    both = Beside(found.source, beside, LABELS)
    wanted = chosen(found.source.columns, columns, _told(data))
    return both, BatchForm(_picked(both, [*wanted, LABELS]), found.is_named, LABELS)


def _with_labels(found: Opened, wanted: Sequence[str], labels: str) -> tuple[Source, BatchForm]:
    by_name = {column.name: column for column in found.source.columns}
    numbers = all(by_name[name].dtype.kind in "biuf" and not by_name[name].shape for name in wanted)
    source: Source = found.source
    if found.is_table and numbers:
        source = SideBySide(found.source, wanted, labels)
        return source, BatchForm(source.columns, True, labels)
    return source, BatchForm(_picked(source, [*wanted, labels]), True, labels)


def _picked(source: Source, names: Sequence[str]) -> list[Column]:
    by_name = {column.name: column for column in source.columns}
    return [by_name[name] for name in names]


def _is_file(text: str) -> bool:
    return "." in text or "/" in text


def _told(data: Any) -> str:
    return str(data) if not hasattr(data, "shape") else "the array"


class Dataset:
    """Each `for` over it is an epoch. `len()` is the number of batches."""

    def __init__(
        self, source: Source, form: BatchForm, budget: int | str | None, *, batch: int, shuffle: bool, seed: int, drop_last: bool
    ) -> None:  # fmt: skip
        self._source, self._form, self._budget = source, form, budget
        self.columns = tuple(form.columns.values())
        self._row_bytes = sum(column.row_bytes for column in self.columns)
        window_rows, self._waiting = sizes(budget, batch, self._row_bytes)
        self._order = Order(np.asarray(source.chunk_rows, np.int64), window_rows, batch, shuffle, seed, drop_last)
        self._next = (0, 0)  # epoch and batch that the next pass begins with
        self._position = (0, 0)  # of the pass under way: batches that were given

    def __len__(self) -> int:
        return self._order.batches

    def __repr__(self) -> str:
        each = ", ".join(f"{one.name} {one.dtype}{list(one.shape) if one.shape else ''}" for one in self.columns)
        return f"<{self.rows:,} rows in batches of {self._order.batch:,}: {each}>"

    @property
    def rows(self) -> int:
        return self._order.rows

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self._next
        self._next, self._position = (epoch + 1, 0), (epoch, first)
        return self._given(epoch, first)

    def _given(self, epoch: int, first: int) -> Iterator[Any]:
        for number, batch in self.batches(epoch, first):
            self._position = (epoch, number + 1)
            yield batch

    def set_epoch(self, epoch: int) -> None:
        """That the next pass is of."""
        self._next = self._position = (epoch, 0)

    def state(self) -> dict[str, Any]:
        """The exact place, as plain values: behind the last batch that was given."""
        epoch, batch = self._position
        if batch >= len(self):
            epoch, batch = epoch + 1, 0
        return {"epoch": epoch, "batch": batch, "data": self.likeness()}

    def restore(self, state: dict[str, Any]) -> None:
        """The next pass begins there. It reads no more than one window to get there."""
        if state["data"] != self.likeness():
            raise CannotStream(
                "the state is of other data, or of another batch size, seed, budget or choice of columns"
            )
        self._next = self._position = (int(state["epoch"]), int(state["batch"]))

    state_dict, load_state_dict = state, restore  # as PyTorch's own objects have them

    def likeness(self) -> int:
        order = self._order
        settings = (order.window_rows, order.batch, order.shuffle, order.seed, order.drop_last, order.rows)
        names = [column.name for column in self.columns]
        return zlib.crc32(f"{self._source.likeness()} {settings} {names}".encode())

    def batches(self, epoch: int, first: int = 0, worker: int = 0, workers: int = 1) -> Iterator[tuple[int, Any]]:
        """(number, batch) of one epoch from batch `first` on. Of several workers each takes its share of the windows."""
        order, waiting = self._order, self._waiting
        if workers > 1:
            window_rows, waiting = sizes(self._budget, order.batch, self._row_bytes, workers)
            order = Order(order.chunk_rows, window_rows, order.batch, order.shuffle, order.seed, order.drop_last)
        ahead = Ahead(self._source, self.columns, order.epoch(epoch), waiting, first=first, start=worker, step=workers)
        try:
            for number, arrays in ahead:
                yield number, self._form.of(arrays)
        finally:
            ahead.close()

    def described(self, describe: Any) -> Any:
        """In the form of a batch, what `describe` says of each column."""
        return self._form.of({name: describe(column) for name, column in self._form.columns.items()})

    def torch(self) -> Any:
        """An IterableDataset for `DataLoader(…, batch_size=None)`."""
        from holdfast.data.stream.for_torch import TorchBatches  # noqa: PLC0415

        return TorchBatches(self)

    def tensorflow(self) -> Any:
        """A tf.data.Dataset for `model.fit`, or for a loop."""
        from holdfast.data.stream.for_tensorflow import tensorflow_dataset  # noqa: PLC0415

        return tensorflow_dataset(self)

    @property
    def shuffles(self) -> bool:
        return self._order.shuffle

    @property
    def seed(self) -> int:
        return self._order.seed
