"""Cleaned copies of Parquet and Arrow files, batch by batch, with the schema they had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from holdfast.data.fix.output import Output
from holdfast.data.fix.rules import Change, Rules, cleaned, has_bad_label, is_bad
from holdfast.data.formats.arrow_values import mask_of, values_of
from holdfast.data.formats.contract import Array

BATCH_ROWS = 1 << 16


def copy_parquet(source: Path, rules: Rules, fills: dict[int, float], output: Output) -> None:
    with pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False) as file:
        schema = file.schema_arrow
        groups = file.metadata
        compression = (
            groups.row_group(0).column(0).compression if groups.num_row_groups and groups.num_columns else "SNAPPY"
        )
        with pq.ParquetWriter(output.unfinished, schema, compression=compression) as writer:
            row = 0
            for number in range(file.num_row_groups):
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[number], use_threads=False):
                    writer.write_batch(cleaned_batch(batch, rules, fills, row, output))
                    row += batch.num_rows


def copy_arrow(source: Path, rules: Rules, fills: dict[int, float], output: Output) -> None:
    with pa.memory_map(str(source)) as mapped:
        try:
            reader: Any = ipc.open_file(mapped)
            batches: Iterator[Any] = (reader.get_batch(number) for number in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            mapped.seek(0)
            reader = ipc.open_stream(mapped)
            batches = iter(reader)
        with ipc.new_file(str(output.unfinished), reader.schema) as writer:
            row = 0
            for batch in batches:
                writer.write_batch(cleaned_batch(batch, rules, fills, row, output))
                row += batch.num_rows


def cleaned_batch(batch: Any, rules: Rules, fills: dict[int, float], first_row: int, output: Output) -> Any:
    """Columns of numbers; lists and text are copied as they are. `fills` are by the number of a flat column."""
    left_out = np.zeros(batch.num_rows, bool)
    columns, changes = [], []
    flat = 0
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        replaced = column
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            values = values_of(column.fill_null(0))
            missing = mask_of(column.is_null())
            bad = is_bad(values, missing)
            if name == rules.labels:
                left_out |= has_bad_label(values, bad, rules.classes)
            else:
                left_out |= bad if rules.drop_rows else False
                now, different = cleaned(values, bad, fills.get(flat), rules.clip)
                still_missing = missing if fills.get(flat) is None else None
                if different.any():
                    changes.append((name, values, missing, now, different))
                    replaced = pa.array(now, column.type, mask=still_missing)
        columns.append(replaced)
        flat += column.type.num_fields if pa.types.is_struct(column.type) else 1
    _tell(changes, left_out, first_row, output)
    made = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    return made.filter(pa.array(~left_out)) if left_out.any() else made


def _tell(
    changes: list[tuple[str, Array, Array, Array, Array]], left_out: Array, first_row: int, output: Output
) -> None:
    for name, before, missing, after, different in changes:
        output.changes(
            Change(first_row + int(row), name, None if missing[row] else float(before[row]), float(after[row]))
            for row in np.flatnonzero(different & ~left_out)
        )
    for row in np.flatnonzero(left_out):
        output.drop(first_row + int(row), "not finite, missing, or no label")
