"""CSV and TFRecord as gzip packs them: the same findings as without it, and bounded work on what is hostile."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pytest import MonkeyPatch

from holdfast.cli import main
from holdfast.data.audit import Request, audit
from holdfast.data.audit.report import Finding
from holdfast.data.audit.tables import Wanted
from holdfast.data.formats import format_of, unpacked
from holdfast.data.formats.contract import Array
from tests.data_audit import written

VALUES = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32)
VALUES[7, 1], VALUES[250, 2] = np.nan, np.inf


def findings(path: Path, quick: bool = False) -> list[Finding]:
    report = audit(Request([path], wanted=Wanted(is_quick=quick)))
    return [replace(finding, path="") for finding in report.findings]


def packed(path: Path, content: bytes | None = None) -> Path:
    into = path.with_name(path.name + ".gz")
    into.write_bytes(gzip.compress(path.read_bytes() if content is None else content, 1))
    return into


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("write", [written.csv, written.tfrecord], ids=lambda write: write.__name__)
def test_the_same_is_found_as_in_the_plain_file(
    write: Callable[[Path, Array], Path], quick: bool, tmp_path: Path
) -> None:
    plain = write(tmp_path / "t", VALUES)
    found = findings(packed(plain), quick)
    assert found == findings(plain, quick)
    assert [(one.column.lstrip("c"), one.where) for one in found] == [("1", (7,)), ("2", (250,))]


def test_members_that_follow_each_other_are_one_file(tmp_path: Path) -> None:
    text = written.csv(tmp_path / "t", VALUES).read_bytes()
    cut = text.index(b"\n", 4000) + 1
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text[:cut]) + gzip.compress(text[cut:]) + bytes(512))
    report = audit(Request([tmp_path / "t.csv.gz"]))
    assert report.rows == 300
    assert [one.id for one in report.findings] == ["non-finite", "non-finite"]


def test_a_file_is_known_by_its_first_bytes_also_without_the_ending(tmp_path: Path) -> None:
    """TensorFlow gives no other name to what it compresses."""
    plain = written.tfrecord(tmp_path / "t", VALUES)
    (tmp_path / "u.tfrecord").write_bytes(gzip.compress(plain.read_bytes()))
    assert findings(tmp_path / "u.tfrecord") == findings(plain)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv.gz", "csv_text"), ("a.TSV.GZ", "csv_text"), ("a.tfrecord.gz", "tfrecord"), ("a-00001-of-00002.gz", "tfrecord"),
        ("a.npy.gz", None), ("a.tar.gz", None), ("a.gz", None),
    ],
)  # fmt: skip
def test_formats_by_name(name: str, expected: str | None, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert format_of(tmp_path / name) == expected


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def damaged(content: bytes) -> bytes:
    return content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]  # its checksum


def no_gzip(content: bytes) -> bytes:
    return content[:2] + b"\xff" + content[3:]


@pytest.mark.parametrize(
    ("spoil", "told"), [(cut_off, "cut off"), (damaged, "incorrect data check"), (no_gzip, "cannot be unpacked")]
)
@pytest.mark.parametrize("write", [written.csv, written.tfrecord], ids=lambda write: write.__name__)
def test_what_is_damaged_is_told_and_what_came_before_counts(
    write: Callable[[Path, Array], Path], spoil: Callable[[bytes], bytes], told: str, tmp_path: Path
) -> None:
    path = packed(write(tmp_path / "t", VALUES))
    path.write_bytes(spoil(path.read_bytes()))
    found = findings(path)
    assert any(one.id == "unreadable" and one.breaks_training and told in one.text for one in found), found


def test_a_bomb_is_not_unpacked_to_its_end(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "BOMB_BYTES", 1 << 20)
    path = packed(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * (4 << 20))
    (one,) = findings(path, quick=True)
    assert (one.id, one.breaks_training) == ("unreadable", True)
    assert "more than 200 times its size" in one.text


def test_little_that_shrinks_far_is_no_bomb(tmp_path: Path) -> None:
    path = packed(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * 100_000)
    assert findings(path, quick=True) == []


def test_no_more_is_held_than_was_asked_for() -> None:
    stream = unpacked.Unpacking(io.BytesIO(gzip.compress(bytes(50 << 20))))
    piece = memoryview(bytearray(1000))
    assert stream.readinto(piece) == 1000
    assert stream.given == 1000


def test_a_compressed_file_is_not_cleaned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = packed(written.csv(tmp_path / "t", VALUES))
    assert main(["audit", str(path), "--fix", str(tmp_path / "clean"), "--impute", "0"]) == 1
    assert "gunzip it first" in capsys.readouterr().out
    assert not (tmp_path / "clean" / "t.csv.gz").exists()
