"""How fast `holdfast audit` reads CSV, npz, Zarr and TFRecord, beside what people use for each: python -m bench.audit_formats [--rounds N] [--folder DIR]

The check is that of bench.audit: how many values of each column are not finite. The page cache is warm: each of these formats is bound by
parsing or unpacking. `whole` adds duplicates, moments, ranges and scales. GB/s are of the file as it lies on the disk. Files have half a gigabyte
or more, so that what starts up with the first call does not decide.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path
from statistics import median

import google_crc32c
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import csv

from bench.audit import HOLDFAST, Measured, measured

ROWS, COLUMNS = 2_500_000, 64
CSV_ROWS, RECORDS = 800_000, 2_000_000
PROGRAMS: dict[tuple[str, str], str] = {
    ("csv", "polars"): """
import polars as pl
def work(path):
    forms = {f"c{number}": pl.Float64 for number in range(64)}
    return sum(pl.scan_csv(path, schema=forms).select((~pl.all().is_finite()).sum()).collect(engine="streaming").row(0))
""",
    ("csv", "pyarrow"): """
import pyarrow.csv as csv, pyarrow.compute as pc
def work(path):
    bad = 0
    for batch in csv.open_csv(path):
        bad += sum(len(column) - pc.sum(pc.is_finite(column)).as_py() for column in batch.columns)
    return bad
""",
    ("csv", "pandas"): """
import numpy as np, pandas as pd
def work(path):
    return sum(int((~np.isfinite(part.to_numpy())).sum()) for part in pd.read_csv(path, chunksize=100_000))
""",
    ("npz", "NumPy"): """
import numpy as np
def work(path):
    return int((~np.isfinite(np.load(path)["x"])).sum())
""",
    ("zarr", "zarr"): """
import numpy as np, zarr
def work(path):
    array = zarr.open(path, mode="r")
    return sum(int((~np.isfinite(array[first : first + array.chunks[0]])).sum()) for first in range(0, array.shape[0], array.chunks[0]))
""",
    ("tfrecord", "tf.data"): """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
def work(path):
    form = {"x": tf.io.FixedLenFeature([64], tf.float32)}
    parsed = tf.data.TFRecordDataset(path).batch(1024).map(lambda one: tf.io.parse_example(one, form)["x"], tf.data.AUTOTUNE)
    bad = parsed.map(lambda x: tf.reduce_sum(tf.cast(~tf.math.is_finite(x), tf.int64))).prefetch(4)
    return int(sum(one.numpy() for one in bad))
""",
}
for kind in ("csv", "npz", "zarr", "tfrecord"):
    PROGRAMS[kind, "holdfast, quick"] = HOLDFAST.format(quick=True)
    PROGRAMS[kind, "holdfast, whole"] = HOLDFAST.format(quick=False)


def make(folder: Path) -> dict[str, Path]:
    """Random rows, with one NaN and two infinities."""
    values = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)
    values[5, 3], values[50_000, 3], values[99_999, 63] = np.nan, np.inf, -np.inf
    paths = {kind: folder / f"values.{kind}" for kind in ("csv", "npz", "zarr", "tfrecord")}
    csv.write_csv(pa.table({f"c{number}": values[:CSV_ROWS, number] for number in range(COLUMNS)}), paths["csv"])
    packed = zipfile.ZipFile(paths["npz"], "w", zipfile.ZIP_DEFLATED, compresslevel=1)  # which is quick to make
    with packed as archive, archive.open("x.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, values)
    zarr.create_array(str(paths["zarr"]), data=values, chunks=(32_768, COLUMNS))
    with open(paths["tfrecord"], "wb") as file:
        for row in values[:RECORDS]:
            file.write(_record(row))
    return paths


def _record(row: np.ndarray) -> bytes:
    """A tf.train.Example with the feature x."""
    message = b"\x0a\x80\x02" + row.tobytes()
    for head in (b"\x12", b"\x0a\x01x\x12", b"\x0a", b"\x0a"):
        message = head + _varint(len(message)) + message
    length = struct.pack("<Q", len(message))
    return length + _masked(length) + message + _masked(message)


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])


def _masked(content: bytes) -> bytes:
    crc = google_crc32c.value(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def size_of(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file()) if path.is_dir() else path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where 2 GB may be written for the time being")
    options = parser.parse_args()
    chance = random.Random(0)
    took: defaultdict[tuple[str, str], list[Measured]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = make(Path(folder))
        for _ in range(options.rounds):
            for key in chance.sample(list(PROGRAMS), len(PROGRAMS)):
                took[key].append(measured(PROGRAMS[key], paths[key[0]], False))
                print(f"{key}: {took[key][-1].seconds:.2f} s", file=sys.stderr, flush=True)
        for (kind, who), runs in sorted(took.items()):
            size, seconds = size_of(paths[kind]) / 1e9, sorted(one.seconds for one in runs)
            print(
                f"audit, {size:.2f} GB {kind}, warm, {who}: {size / median(seconds):.2f} GB/s ({seconds[0]:.2f} to {seconds[-1]:.2f} s, "
                f"{len(runs)} rounds), {median(one.processor_s for one in runs):.2f} s of processor, peak {max(one.peak_mib for one in runs):.0f} MiB"
            )


if __name__ == "__main__":
    main()
