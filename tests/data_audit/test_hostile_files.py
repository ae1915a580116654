"""Files that are broken, empty or meant to harm: one clear line, little memory, nothing written anywhere."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from PIL import Image

from holdfast.cli import main
from holdfast.data.audit import Request, audit, kept
from holdfast.data.formats import npz
from tests.data_audit.written import example, floats, framed

HUGE = 1 << 40


def _npy_header(text: str, length: int | None = None) -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text) if length is None else length) + text.encode()


def _npz(path: Path, name: str, content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(name, content)


def _array_bytes(values: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.save(made, values)
    return made.getvalue()


def huge_header(path: Path) -> None:
    path.write_bytes(_npy_header("", length=0xFFFFFFF0))


def deep_header(path: Path) -> None:
    path.write_bytes(_npy_header("(" * 60_000))


def shape_that_no_memory_holds(path: Path) -> None:
    path.write_bytes(_npy_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({HUGE}, {HUGE})}}"))


def negative_shape(path: Path) -> None:
    path.write_bytes(_npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2)}"))


def python_objects(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], dtype=object))


def cut_off(path: Path) -> None:
    np.save(path, np.zeros((100, 3), np.float32))
    path.write_bytes(path.read_bytes()[:-500])


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 16)


def leads_out(path: Path) -> None:
    _npz(path, "../../outside.npy", _array_bytes(np.zeros(3)))


def bomb(path: Path) -> None:
    """Four MiB of zeros, where one is all that is unpacked."""
    _npz(path, "x.npy", _array_bytes(np.zeros(4 << 20, np.uint8)))


def cut_archive(path: Path) -> None:
    _npz(path, "x.npy", _array_bytes(np.random.default_rng(0).random(5000)))
    path.write_bytes(path.read_bytes()[:9000])


def damaged_member(path: Path) -> None:
    _npz(path, "x.npy", _array_bytes(np.random.default_rng(0).random(5000)), zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[20_000] ^= 255
    path.write_bytes(content)


def cut_parquet(path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-20])


def damaged_record(path: Path) -> None:
    content = bytearray(b"".join(framed(example({"x": floats(np.ones(4))})) for _ in range(10)))
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def cut_record(path: Path) -> None:
    path.write_bytes(b"".join(framed(example({"x": floats(np.ones(4))})) for _ in range(10))[:-7])


def huge_record(path: Path) -> None:
    path.write_bytes(framed(b"")[:0] + struct.pack("<Q", HUGE) + b"\0\0\0\0")


def endless_quote(path: Path) -> None:
    path.write_text('a,b\n1,"2\n' + "3,4\n" * 100)


def not_utf8(path: Path) -> None:
    path.write_bytes("name,x\ncafé,1\n".encode("latin-1") * 20)


def utf_16(path: Path) -> None:
    path.write_text("name,x\na,1\n" * 20, encoding="utf-16")


def carriage_returns(path: Path) -> None:
    path.write_bytes(b"name,x\ra,1\r" * 20)


def pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12345\n")


def web_page(path: Path) -> None:
    path.write_text("\n<!DOCTYPE html>\n<html><title>404</title></html>\n")


def bad_metadata(path: Path) -> None:
    path.mkdir()
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "arr')


def cut_tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for number in range(3):
            content = tarfile.TarInfo(f"{number}.cls")
            content.size = 600
            archive.addfile(content, io.BytesIO(b"1" * 600))
    path.write_bytes(path.read_bytes()[:1200])


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "huge_header.npy": (huge_header, "its header says it is 4,294,967,280 bytes long"),
    "deep_header.npy": (deep_header, "its header is damaged"),
    "large.npy": (shape_that_no_memory_holds, "a shape that no memory holds"),
    "negative.npy": (negative_shape, "its header has no shape"),
    "objects.npy": (python_objects, "it holds Python objects"),
    "cut.npy": (cut_off, "it is cut off: 58 of 100 rows are there"),
    "empty.npy": (nothing, "it is empty"),
    "noise.npy": (noise, "it is no .npy file"),
    "leads_out.npz": (leads_out, "its name leads out of the archive"),
    "bomb.npz": (bomb, "times its size: it is not unpacked"),
    "cut.npz": (cut_archive, "it is no whole .npz archive"),
    "damaged.npz": (damaged_member, "it cannot be unpacked"),
    "empty.csv": (nothing, "it is empty"),
    "noise.csv": (noise, "it is no text"),
    "quote.csv": (endless_quote, "a quote in it is never closed (at byte 6)"),
    "latin.csv": (not_utf8, "it is not UTF-8"),
    "utf16.csv": (utf_16, "it is UTF-16"),
    "mac.csv": (carriage_returns, "its lines end with carriage returns alone"),
    "pointer.csv": (pointer, "run git lfs pull"),
    "pointer.npy": (pointer, "run git lfs pull"),
    "page.parquet": (web_page, "it is a web page"),
    "cut.parquet": (cut_parquet, "Parquet"),
    "empty.parquet": (nothing, "Parquet"),
    "noise.feather": (noise, ""),
    "damaged.tfrecord": (damaged_record, "it is damaged"),
    "cut.tfrecord": (cut_record, "it is cut off within a record"),
    "huge.tfrecord": (huge_record, "it is damaged"),
    "empty.h5": (nothing, "it is no whole HDF5 file"),
    "bad.zarr": (bad_metadata, "it is no whole Zarr store"),
    "cut.tar": (cut_tar, "it is no whole tar"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line_says_what_is_wrong(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(kept, "AT_ONCE_S", 1e9)  # however slow the machine is
    make, expected = CASES[name]
    make(tmp_path / name)
    there = sorted(tmp_path.rglob("*"))
    tracemalloc.start()
    code = main(["audit", str(tmp_path / name), "--json", "--dir", str(tmp_path / "state")])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["id"] == "unreadable"]
    assert (code, len(found)) == (1, 1)
    assert expected in found[0]["text"] and "\n" not in found[0]["text"]
    assert found[0]["breaks_training"] is True
    assert peak < 100 << 20
    assert sorted(tmp_path.rglob("*")) == there


def test_what_stands_before_the_cut_is_looked_at(tmp_path: Path) -> None:
    values = np.zeros((100, 3), np.float32)
    values[7, 1] = np.nan
    np.save(tmp_path / "x.npy", values)
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-500])
    report = audit(Request([tmp_path / "x.npy"]))
    assert report.rows == 58
    assert [(one.id, one.where) for one in report.findings if one.id == "non-finite"] == [("non-finite", (7,))]


@pytest.mark.parametrize("shape", [(0,), (0, 4), (5, 0)])
def test_an_array_without_values_is_no_error(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    report = audit(Request([tmp_path / "x.npy"]))
    assert report.rows == shape[0]
    assert [one.text for one in report.findings] == ([] if shape[0] else ["it has no rows"])


def test_tables_of_headers_alone_have_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "b.parquet")
    report = audit(Request([tmp_path / "a.csv", tmp_path / "b.parquet"]))
    assert [one.text for one in report.findings] == ["it has no rows"] * 2


def test_an_image_that_says_it_is_huge_is_not_decoded(tmp_path: Path) -> None:
    small = io.BytesIO()
    Image.new("RGB", (8, 8)).save(small, "PNG")
    content = bytearray(small.getvalue())
    content[16:24] = struct.pack(">II", 40_000, 40_000)  # the header's width and height, with its checksum
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    (tmp_path / "large.png").write_bytes(content)
    Image.new("RGB", (8, 8)).save(tmp_path / "small.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = audit(Request([tmp_path]))
    assert [(Path(one.path).name, one.text) for one in report.findings if one.breaks_training] == [
        ("large.png", "it says it has 40,000 × 40,000 pixels: it is not decoded")
    ]


def test_a_lost_chunk_of_zarr_is_told(tmp_path: Path) -> None:
    array = zarr.create_array(store=str(tmp_path / "x.zarr"), shape=(40, 2), chunks=(10, 2), dtype="f4")
    array[:] = np.random.default_rng(0).random((40, 2))
    assert audit(Request([tmp_path / "x.zarr"])).clean
    next(path for path in (tmp_path / "x.zarr").rglob("2/0")).unlink()
    found = [one for one in audit(Request([tmp_path / "x.zarr"])).findings if one.id == "unreadable"]
    assert [one.text for one in found] == ["chunks of 4 that have no file, so they read as 0.0: 1"]


def test_the_statistics_of_parquet_are_not_believed(tmp_path: Path) -> None:
    """Writers leave NaN out of the least and the most, so they say of such a column that it is finite."""
    values = np.array([1.0, np.nan, 3.0, np.nan])
    pq.write_table(pa.table({"a": values}), tmp_path / "x.parquet")
    told = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0).column(0).statistics
    assert (told.min, told.max, told.null_count) == (1.0, 3.0, 0)
    found = audit(Request([tmp_path / "x.parquet"])).findings
    assert [(one.id, one.count, one.where) for one in found] == [("non-finite", 2, (1, 3))]
