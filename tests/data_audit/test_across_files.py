"""What several files, labels and images together show, and the same through the command line."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from holdfast.cli import main
from holdfast.data.audit import Request, audit
from holdfast.data.audit.report import Finding
from holdfast.data.audit.tables import Wanted
from holdfast.data.formats import files_below
from tests.data_audit import written


def random_rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 6)).astype(np.float32)


def found_in(folder: Path, **wanted: object) -> list[Finding]:
    return audit(Request(files_below(folder), wanted=Wanted(**wanted))).findings  # type: ignore[arg-type]


def test_a_shard_of_another_shape_or_type_is_told_and_features_beside_labels_are_not(tmp_path: Path) -> None:
    for number in range(4):
        np.save(tmp_path / f"part-{number}.npy", random_rows(30, number))
    np.save(tmp_path / "x.npy", random_rows(30, 9))
    np.save(tmp_path / "y.npy", np.arange(30) % 3)
    assert found_in(tmp_path) == []
    np.save(tmp_path / "part-2.npy", random_rows(30)[:, :5])
    np.save(tmp_path / "part-3.npy", random_rows(30, 7).astype(np.float64))
    assert [(one.id, Path(one.path).name, one.breaks_training) for one in found_in(tmp_path)] == [
        ("shape", "part-2.npy", True),
        ("dtype", "part-3.npy", True),
    ]


def test_rows_without_a_label_are_told(tmp_path: Path) -> None:
    np.save(tmp_path / "x_train.npy", random_rows(30))
    np.save(tmp_path / "y_train.npy", np.arange(29) % 3)
    (one,) = found_in(tmp_path)
    assert (one.id, one.count, one.breaks_training) == ("shape", 1, True)
    assert "x_train.npy has 30 rows, y_train.npy has 29" in one.text


def test_rows_that_are_in_both_sets_are_told_by_folder_by_name_and_when_asked(tmp_path: Path) -> None:
    train, other = random_rows(200), random_rows(50, 1)
    other[7], other[30] = train[11], train[150]
    for place, values in (
        ("train/a.npy", train),
        ("val/a.npy", other),
        ("sets/train.npy", train),
        ("sets/test.npy", other),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        np.save(tmp_path / place, values)
    for request in (
        Request(files_below(tmp_path / "sets")),
        Request([tmp_path / "train/a.npy", tmp_path / "val/a.npy"]),
        Request([tmp_path / "sets/train.npy"], [tmp_path / "val/a.npy"]),
    ):
        (one,) = audit(request).findings
        assert (one.id, one.count, one.where, one.breaks_training) == ("overlap", 2, (7, 30), False)
        assert "row 7 is row 11 there" in one.text
    assert audit(Request([tmp_path / "train/a.npy"])).findings == []


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (np.array([0, 1, 2] * 20), 3, []),
        (np.array([0, 1, 2] * 20), 2, [("label-range", 20, True)]),
        (np.array([1, 2, 3] * 20), None, [("label-range", 20, False)]),
        (np.array([-1, 0, 1] * 20), None, [("label-range", 20, False)]),
        (np.array([-1, 1] * 30), None, []),
        (np.array([0] * 99 + [1]), 2, [("imbalance", 1, False)]),
        (np.array([0.0, 1.0, np.nan] * 20), 2, [("non-finite", 20, True)]),
    ],
)
def test_labels_are_among_the_classes(
    tmp_path: Path, labels: np.ndarray, classes: int | None, expected: list[tuple[str, int, bool]]
) -> None:
    np.save(tmp_path / "y.npy", labels)
    found = audit(Request([tmp_path / "y.npy"], wanted=Wanted("y", classes))).findings
    assert [(one.id, one.count, one.breaks_training) for one in found] == expected


def test_advice_is_given_and_breaks_nothing(tmp_path: Path) -> None:
    values = random_rows(500)
    values[:, 1] = 4.0
    values[:, 2] *= 1e6
    values[400, 3] = 1e9
    values[41, 4] = -999.0
    values[450] = values[3]
    np.save(tmp_path / "x.npy", values)
    report = audit(Request([tmp_path / "x.npy"]))
    assert {(one.id, one.column, one.where) for one in report.findings} == {
        ("constant", "1", ()), ("range", "3", (400,)), ("range", "4", (41,)), ("scale", "3", ()), ("duplicate", "", (450,)),
    }  # fmt: skip
    assert not report.breaks_training and not report.clean


def test_channels_are_looked_at_where_they_stand(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((20, 8, 9, 3), np.float32)
    images[4, 2, 2, 1] = np.nan
    np.save(tmp_path / "last.npy", images)
    np.save(tmp_path / "second.npy", np.ascontiguousarray(np.moveaxis(images, -1, 1)))
    np.save(tmp_path / "pixels.npy", (images.clip(0, 1)[..., 0] * 255).astype(np.uint8))
    for name in ("last", "second"):
        (one,) = audit(Request([tmp_path / f"{name}.npy"])).findings
        assert (one.id, one.column, one.count, one.where) == ("non-finite", "1", 1, (4,))
    assert audit(Request([tmp_path / "pixels.npy"])).findings == []


def test_nulls_lists_and_structs_of_parquet(tmp_path: Path) -> None:
    rows = 40
    table = pa.table({
        "whole": pa.array([None if row == 3 else row for row in range(rows)], pa.int64()),
        "list": pa.array([[1.0, float("nan") if row == 5 else 2.0][: 1 + row % 2] for row in range(rows)]),
        "inner": pa.array([{"a": float(row), "b": None if row == 7 else float(-row)} for row in range(rows)]),
        "word": pa.array(["x"] * rows),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    found = audit(Request([tmp_path / "t.parquet"])).findings
    assert [(one.column, one.count, one.where) for one in found] == [
        ("whole", 1, (3,)), ("list", 1, (5,)), ("inner.b", 1, (7,)),
    ]  # fmt: skip


def _images(folder: Path, count: int, seed: int = 0) -> None:
    folder.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    for number in range(count):
        Image.fromarray(chance.integers(0, 255, (12, 10, 3), np.uint8)).save(folder / f"{number:02}.png")


def test_images_that_do_not_decode_odd_ones_copies_and_boxes_outside(tmp_path: Path) -> None:
    _images(tmp_path / "train/cat", 40)
    _images(tmp_path / "train/dog", 40, 1)
    _images(tmp_path / "val/cat", 10, 2)
    assert found_in(tmp_path) == []
    cut = (tmp_path / "train/dog/05.png").read_bytes()
    (tmp_path / "train/dog/05.png").write_bytes(cut[: len(cut) // 2])
    (tmp_path / "train/dog/06.png").write_bytes(b"")
    Image.new("L", (12, 10)).save(tmp_path / "train/cat/grey.png")
    (tmp_path / "val/cat/copy.png").write_bytes((tmp_path / "train/cat/03.png").read_bytes())
    (tmp_path / "train/cat/07.txt").write_text("0 0.5 0.5 0.2 0.2\n1 0.95 0.5 0.2 0.2\n")
    found = {
        (one.id, str(Path(one.path).relative_to(tmp_path)), one.count, one.breaks_training)
        for one in found_in(tmp_path)
    }
    assert found == {
        ("unreadable", "train/dog/05.png", 1, True), ("unreadable", "train/dog/06.png", 1, True),
        ("dtype", "train", 1, False), ("shape", "train", 1, False), ("range", "train/cat/07.txt", 1, False),
        ("overlap", "val", 1, False),
    }  # fmt: skip


def test_boxes_of_coco_lie_in_their_images(tmp_path: Path) -> None:
    boxes = [[0, 0, 10, 10], [90, 0, 20, 10], [5, 5, 0, 3]]
    content = {
        "images": [{"id": 1, "width": 100, "height": 50, "file_name": "a.jpg"}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": box} for box in boxes] + [{"image_id": 2, "category_id": 9, "bbox": boxes[0]}],
    }  # fmt: skip
    (tmp_path / "instances.json").write_text(json.dumps(content))
    (tmp_path / "other.json").write_text("{}")
    assert {(one.id, one.count, one.where) for one in found_in(tmp_path)} == {
        ("range", 2, (1, 2)), ("label-range", 1, (3,)), ("shape", 1, (3,)),
    }  # fmt: skip


# -- the command line


def test_the_answer_for_programs_and_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = random_rows(30)
    values[3, 2] = np.inf
    np.save(tmp_path / "x.npy", values)
    assert main(["audit", str(tmp_path), "--json", "--html", str(tmp_path / "r.html")]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["clean"], answer["files"], answer["rows"]) == (False, 1, 30)
    assert answer["findings"] == [
        {"id": "non-finite", "path": str(tmp_path / "x.npy"), "column": "2", "count": 1, "where": [3], "breaks_training": True, "text": "1 +inf"}
    ]  # fmt: skip
    page = (tmp_path / "r.html").read_text()
    assert "breaks training" in page and page.count("<svg") == 6 and "<script" not in page
    np.save(tmp_path / "x.npy", random_rows(30))
    assert main(["audit", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("this data is fit to train on (1 file, 30 rows")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere: there is no such file or folder"),
        (["."], "nothing in it can be read"),
        (["x.npy", "--classes", "none"], "none is no number of classes"),
        (["x.npy", "--labels", "species"], "no column is named species; there are 0, 1, 2"),
        (["x.npy", "--impute", "mean"], "give --fix OUT"),
        (["x.npy", "--fix", "out"], "say how to clean"),
        (["x.npy", "--fix", "out", "--impute", "most"], "give median, mean or a number"),
        (["x.npy", "--fix", "out", "--impute", "0", "--drop-rows"], "exclude each other"),
        (["x.npy", "--fix", "out", "--clip", "2", "1"], "the first must be below the second"),
        (["x.npy", "--fix", "x.npy", "--impute", "0"], "would be written over or into the input"),
        (["x.npy", "--html", "no/such/place.html"], "cannot write no/such/place.html"),
    ],
)
def test_misuse_is_one_line(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if words[0] == "x.npy":
        np.save(tmp_path / "x.npy", random_rows(30))
    before = sorted(tmp_path.rglob("*"))
    assert main(["audit", *words]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1 and told.out == ""
    assert sorted(tmp_path.rglob("*")) == before


WITHOUT = (
    "import sys; sys.modules[{name!r}] = None; from holdfast.cli import main; sys.exit(main(['audit', *sys.argv[1:]]))"
)


@pytest.mark.parametrize(("name", "file"), [("numpy", "x.npy"), ("pyarrow", "x.csv"), ("PIL", "x.png")])
def test_a_package_that_is_not_there_is_named(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).write_text("a,b\n1,2\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(name=name), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'holdfast[audit]'" in done.stderr and done.stderr.count("\n") == 1


SLOW = """
import sys, time
from holdfast.data.audit import tables
real = tables.gathered
def slow(table, wanted, progress):
    if table.path.name == "b.npy":
        print("here", flush=True)
        time.sleep(60)
    return real(table, wanted, progress)
import holdfast.data.audit
holdfast.data.audit.gathered = slow
from holdfast.cli import main
sys.exit(main(["audit", "."]))
"""


def test_stopped_with_a_key_it_goes_on_with_the_next_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate("abc"):
        np.save(tmp_path / f"{name}.npy", random_rows(30, number) * np.nan)
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None and running.stdout.readline() == "here\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "1 of 3 files are done, the same command goes on" in said
    assert main(["audit", "."]) == 1
    assert "3 files, 1 of them read before" in capsys.readouterr().out
    assert list(Path(".holdfast").rglob("*.json")) == []
    assert main(["audit", "."]) == 1
    assert "read before" not in capsys.readouterr().out


def test_at_a_terminal_a_bar_shows_how_fast_it_reads(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((20_000_000,), np.float32))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(
            sys.executable,
            [sys.executable, "-m", "holdfast", "audit", str(tmp_path), "--quick", "--dir", str(tmp_path)],
        )
    seen = b""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # it has ended
            break
        seen += more
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"x.npy" in seen and b"MB/s" in seen.replace(b"GB/s", b"MB/s")
    assert b"this data is fit to train on" in seen


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_pandas_is_not_imported_where_nobody_asked_for_rules(tmp_path: Path, ending: str) -> None:
    values = np.array([[1.0, 2.0], [np.nan, 3.0]], np.float32)
    path = {".csv": written.csv, ".parquet": written.parquet, ".feather": written.arrow}[ending](tmp_path / "t", values)
    program = (
        "import sys, pathlib; from holdfast.data.audit import Request, audit;"
        f"report = audit(Request([pathlib.Path({str(path)!r})]));"
        "print(len(report.findings), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
