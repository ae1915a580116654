"""The same rows from every format, whole and in pieces; what cannot be streamed is refused in a line that says what to do."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast.data
from holdfast.data.stream.csv_index import chunks_of
from holdfast.data.stream.source import CannotStream
from tests.data_audit.written import example, floats, framed, integers

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import csv, parquet  # noqa: E402

ROWS = 5003
X = np.random.default_rng(0).normal(size=(ROWS, 3)).astype("float32")
Y = np.arange(ROWS) % 5
X[:, 0] = np.arange(ROWS)  # a row knows its number


def npy(place: Path) -> dict[str, Any]:
    np.save(place / "x.npy", X)
    np.save(place / "y.npy", Y)
    return {"data": place / "x.npy", "labels": str(place / "y.npy")}


def npz(place: Path) -> dict[str, Any]:
    np.savez(place / "both.npz", x=X, y=Y)
    return {"data": place / "both.npz", "labels": "y"}


def table() -> Any:
    return pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})


def parquet_file(place: Path) -> dict[str, Any]:
    parquet.write_table(table(), place / "t.parquet", row_group_size=1200)
    return {"data": place / "t.parquet", "labels": "y"}


def csv_file(place: Path) -> dict[str, Any]:
    csv.write_csv(table(), place / "t.csv")
    return {"data": str(place / "t.csv"), "labels": "y"}


def folder(place: Path) -> dict[str, Any]:
    for number, first in enumerate(range(0, ROWS, 1700)):
        parquet.write_table(table().slice(first, 1700), place / f"part-{number}.parquet", row_group_size=500)
    return {"data": place, "labels": "y"}


def zarr_group(place: Path) -> dict[str, Any]:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(place / "z.zarr"), mode="w")
    for name, values, chunk in (("x", X, (700, 3)), ("y", Y, (700,))):
        group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunk)[:] = values
    return {"data": place / "z.zarr", "labels": "y"}


def tfrecord(place: Path) -> dict[str, Any]:
    for number, first in enumerate(range(0, ROWS, 3000)):
        rows = zip(X[first : first + 3000], Y[first : first + 3000], strict=True)
        records = (framed(example({"x": floats(x), "y": integers([int(y)])})) for x, y in rows)
        (place / f"train.tfrecord-{number:05d}-of-00002").write_bytes(b"".join(records))
    return {"data": place, "labels": "y"}


def hdf5(place: Path) -> dict[str, Any]:
    h5py = pytest.importorskip("h5py")
    with h5py.File(place / "both.h5", "w") as file:
        file.create_dataset("x", data=X, chunks=(700, 3))
        file.create_dataset("set/y", data=Y)
    return {"data": place / "both.h5", "labels": "set/y"}


def dask_array(_place: Path) -> dict[str, Any]:
    dask = pytest.importorskip("dask.array")
    return {"data": dask.from_array(X, chunks=(900, 3)), "labels": Y}


def memory_map(place: Path) -> dict[str, Any]:
    np.save(place / "x.npy", X)
    return {"data": np.load(place / "x.npy", mmap_mode="r"), "labels": Y}


FORMATS = (npy, npz, parquet_file, csv_file, folder, zarr_group, tfrecord, hdf5, dask_array, memory_map)


@pytest.mark.parametrize("write", FORMATS, ids=[one.__name__ for one in FORMATS])
def test_every_format_gives_each_row_once_with_its_label(
    write: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    given = write(tmp_path)
    data = holdfast.data.open(**given, batch=128, shuffle=True, seed=3, budget="64K")
    assert data.rows == ROWS and len(data) == 40
    passes = []
    for _ in range(2):
        x, y = (np.concatenate(parts) for parts in zip(*data, strict=True))
        passes.append(x)
        numbers = x[:, 0].astype(int)
        assert sorted(numbers) == list(range(ROWS)) and not np.array_equal(numbers, np.arange(ROWS))
        assert np.array_equal(y, Y[numbers]) and np.allclose(x, X[numbers], rtol=1e-6) and y.dtype.kind == "i"
    assert not np.array_equal(passes[0], passes[1])
    in_order = holdfast.data.open(**given, batch=1000, budget="1M")
    assert np.allclose(np.concatenate([x for x, _ in in_order]), X, rtol=1e-6)


def images(place: Path, sizes: list[tuple[int, int]]) -> None:
    from PIL import Image

    for number, (height, width) in enumerate(sizes):
        folder = place / ("cats", "dogs")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (width, height), (number, 0, 255)).save(folder / f"{number:03d}.png")


def test_images_come_with_the_number_of_their_folder(tmp_path: Path) -> None:
    images(tmp_path, [(4, 6)] * 50)
    data = holdfast.data.open(tmp_path, labels="label", batch=8, shuffle=True, seed=1)
    x, y = (np.concatenate(parts) for parts in zip(*data, strict=True))
    assert x.shape == (50, 4, 6, 3) and x.dtype == np.uint8 and sorted(x[:, 0, 0, 0]) == list(range(50))
    assert np.array_equal(y, x[:, 0, 0, 0] % 2) and not np.array_equal(y, sorted(y))


def test_images_of_other_sizes_are_brought_to_one_when_asked(tmp_path: Path) -> None:
    images(tmp_path, [(4, 6), (5, 6)])
    with pytest.raises(CannotStream, match=r"001.png has 5 × 6 pixels, 000.png has 4 × 6: give image_size="):
        list(holdfast.data.open(tmp_path))
    (batch,) = holdfast.data.open(tmp_path, image_size=(8, 8))
    assert batch["image"].shape == (2, 8, 8, 3) and list(batch["label"]) == [0, 1]


def test_text_of_tfrecord_stays_bytes_and_a_feature_that_changes_its_length_is_named(tmp_path: Path) -> None:
    text = b"\x0a" + bytes([len(b"\x0a\x02hi")]) + b"\x0a\x02hi"
    good = framed(example({"t": text, "x": floats(X[0])}))
    (tmp_path / "a.tfrecord").write_bytes(good * 3)
    (batch,) = holdfast.data.open(tmp_path / "a.tfrecord")
    assert list(batch["t"]) == [b"hi"] * 3 and batch["x"].shape == (3, 3)
    (tmp_path / "a.tfrecord").write_bytes(good * 3 + framed(example({"t": text, "x": floats(X[0, :2])})))
    with pytest.raises(CannotStream, match="record 3: the feature x has 2 of float32 instead of 3 of float32"):
        list(holdfast.data.open(tmp_path / "a.tfrecord"))


def test_columns_have_their_names_and_text_stays_text(tmp_path: Path) -> None:
    words = [f'a "word",\nno {number}' for number in range(400)]
    csv.write_csv(pyarrow.table({"n": range(400), "words": words}), tmp_path / "t.csv")
    data = holdfast.data.open(tmp_path / "t.csv", batch=64)
    batches = list(data)
    assert [str(word) for one in batches for word in one["words"]] == words
    assert set(next(iter(holdfast.data.open(tmp_path / "t.csv", columns=["n"])))) == {"n"}


def test_missing_numbers_are_nan_wherever_they_come(tmp_path: Path) -> None:
    values = [None if number == 3000 else number for number in range(4000)]
    table = pyarrow.table({"n": values, "m": range(4000)})
    parquet.write_table(table, tmp_path / "t.parquet")
    csv.write_csv(table, tmp_path / "t.csv")
    for name in ("t.parquet", "t.csv"):
        found = np.concatenate([one["n"] for one in holdfast.data.open(tmp_path / name, batch=500)])
        assert np.flatnonzero(np.isnan(found)).tolist() == [3000] and found[3999] == 3999


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_rows_of_a_csv_file_are_counted_as_they_are_parsed(ending: str, tmp_path: Path) -> None:
    lines = ["n,t", "1,a", "", '2,"b\nc"', "3,", "", '4,"d ""e"""', "5,f"]
    (tmp_path / "t.csv").write_bytes(ending.join(lines).encode())
    assert sum(chunk.rows for chunk in chunks_of(tmp_path / "t.csv")) == 5
    found = [value for one in holdfast.data.open(tmp_path / "t.csv", batch=2) for value in one["n"]]
    assert found == [1, 2, 3, 4, 5]


def cut_off(place: Path) -> Any:
    np.save(place / "x.npy", X)
    (place / "x.npy").write_bytes((place / "x.npy").read_bytes()[:-100])
    return place / "x.npy"


def objects(place: Path) -> Any:
    np.save(place / "x.npy", np.array([{}, []], object), allow_pickle=True)
    return place / "x.npy"


def compressed(place: Path) -> Any:
    np.savez_compressed(place / "x.npz", x=X)
    return place / "x.npz"


def packed_csv(place: Path) -> Any:
    (place / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    return place / "x.csv.gz"


def packed_csv_by_another_name(place: Path) -> Any:
    return packed_csv(place).rename(place / "x.csv")


def packed_records(place: Path) -> Any:
    (place / "x.tfrecord.gz").write_bytes(gzip.compress(b"anything"))
    return place / "x.tfrecord.gz"


def folder_of_packed(place: Path) -> Any:
    return packed_csv(place).parent


def no_zip(place: Path) -> Any:
    (place / "x.npz").write_bytes(b"PK nothing")
    return place / "x.npz"


def entry_elsewhere(place: Path) -> Any:
    with zipfile.ZipFile(place / "x.npz", "w") as archive:
        archive.writestr("../../x.npy", b"no array")
    return place / "x.npz"


def two_kinds(place: Path) -> Any:
    np.save(place / "x.npy", X)
    csv.write_csv(table(), place / "t.csv")
    return place


def another_shape(place: Path) -> Any:
    np.save(place / "a.npy", X)
    np.save(place / "b.npy", X[:, :2])
    return place


def empty(place: Path) -> Any:
    np.save(place / "x.npy", X[:0])
    return place / "x.npy"


def unclosed_quote(place: Path) -> Any:
    (place / "t.csv").write_text('n,t\n1,a\n2,"b\n3,c\n')
    return place / "t.csv"


def no_parquet(place: Path) -> Any:
    (place / "t.parquet").write_bytes(b"PAR1 and no more")
    return place / "t.parquet"


def cut_record(place: Path) -> Any:
    (place / "a.tfrecord").write_bytes(framed(example({"x": floats(X[0])}))[:-3])
    return place / "a.tfrecord"


def changed_record(place: Path) -> Any:
    record = bytearray(framed(example({"x": floats(X[0])})))
    record[20] ^= 1
    (place / "a.tfrecord").write_bytes(record)
    return place / "a.tfrecord"


def no_image(place: Path) -> Any:
    (place / "a.png").write_bytes(b"\x89PNG and no more")
    return place


def no_hdf5(place: Path) -> Any:
    (place / "a.h5").write_bytes(b"nothing")
    return place / "a.h5"


REFUSED = {
    cut_off: "cut off", objects: "Python objects", compressed: "unzip x.npz", no_zip: "cannot be read",
    entry_elsewhere: "no array of NumPy's", two_kinds: "one kind of file", another_shape: r"b.npy differs from .*a.npy", empty: "no rows",
    unclosed_quote: "never closed", no_parquet: "cannot be read",
    cut_record: "cut off or damaged", changed_record: "does not match its checksum", no_image: "a.png does not decode", no_hdf5: "cannot be read",
    packed_csv: "gunzip it first", packed_csv_by_another_name: "gunzip it first", packed_records: "gunzip it first", folder_of_packed: "gunzip it first",
}  # fmt: skip


@pytest.mark.parametrize("write", REFUSED, ids=[one.__name__ for one in REFUSED])
def test_what_cannot_be_streamed_is_refused_in_one_line(write: Callable[[Path], Any], tmp_path: Path) -> None:
    with pytest.raises(CannotStream, match=REFUSED[write]) as refused:
        list(holdfast.data.open(write(tmp_path)))
    assert "\n" not in str(refused.value)


def test_a_wrong_choice_is_told_with_what_there_is(tmp_path: Path) -> None:
    given = parquet_file(tmp_path)
    for options, words in (
        ({"labels": "z"}, "has no column 'z'; it has a, b, c, y"),
        ({"columns": ["a", "z"]}, "'z'"),
        ({"batch": 0}, "at least 1"),
        ({"batch": 4096, "budget": "64K"}, "make the batch smaller"),
        ({"labels": np.zeros(7)}, "5003 rows and 7 labels"),
    ):
        with pytest.raises(CannotStream, match=words):
            holdfast.data.open(given["data"], **options)
    with pytest.raises(CannotStream, match="does not exist"):
        holdfast.data.open(tmp_path / "nothing.npy")
    with pytest.raises(ValueError, match="is no size"):
        holdfast.data.open(given["data"], budget="a lot")


def test_a_file_that_gets_shorter_is_an_error_where_the_batches_are_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    data = holdfast.data.open(tmp_path / "x.npy", budget="64K")
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:10000])
    with pytest.raises(CannotStream, match="got shorter"):
        list(data)
