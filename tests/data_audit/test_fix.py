"""A cleaned copy: what is bad is replaced or left out, everything else stays, the input is not touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pyarrow import feather

from holdfast.data.audit import Request, audit
from holdfast.data.fix import medians
from holdfast.data.fix.cleaning import clean
from holdfast.data.fix.rules import CannotFix, Rules
from holdfast.data.formats.contract import Array
from holdfast.data.formats.examples_wire import features_of
from holdfast.data.formats.record_frames import records
from tests.data_audit.written import WRITERS

Writer = Callable[[Path, Array], Path]
VALUES = st.floats(-1e4, 1e4, width=32) | st.sampled_from([np.nan, np.inf, -np.inf])
TABLES = arrays.arrays(np.float32, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=VALUES)


def read(path: Path) -> Array:
    """As the usual library does."""
    if path.suffix == ".npz":
        return np.asarray(np.load(path)["x"])
    if path.suffix in (".parquet", ".feather"):
        table = pq.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
        return np.stack([column.to_numpy() for column in table.columns], axis=1)
    if path.suffix == ".csv":
        return np.genfromtxt(path, delimiter=",", skip_header=1, ndmin=2).astype(np.float32)
    if path.suffix == ".zarr":
        return np.asarray(zarr.open(str(path), mode="r")[:])
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return np.asarray(file["x"][:])
    if path.suffix == ".tfrecord":
        with open(path, "rb") as file:
            rows = [features_of(record) for record in records(file)]
        return np.array([[row[name].values[0] for name in sorted(row)] for row in rows], np.float32)
    return np.asarray(np.load(path))


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@settings(max_examples=6)
@given(values=TABLES, how=st.sampled_from(["median", "mean", "constant", "drop"]))
def test_the_copy_is_what_numpy_makes_of_it(write: Writer, values: Array, how: str) -> None:
    good = np.isfinite(values)
    usable = how in ("constant", "drop") or bool(good.any(axis=0).all())
    kept = good.all(axis=1)
    if not usable or (how == "drop" and not kept.any()):
        return
    rules = Rules(drop_rows=True) if how == "drop" else Rules(7.0 if how == "constant" else how)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        source = write(Path(folder) / "table", values)
        target = Path(folder) / "out" / source.name
        before = [path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        done = clean([(source, target)], rules).files[0]
        assert (done.refused, done.dropped) == ("", int((~kept).sum()) if how == "drop" else 0)
        found = read(target)
        after = [
            path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file() and "out" not in path.parts
        ]
        assert after[: len(before)] == before
        lines = [json.loads(line) for line in target.with_name(target.name + ".changes.jsonl").read_text().splitlines()]
    if how == "drop":
        assert np.array_equal(found, values[kept])
        assert [line["row"] for line in lines if "dropped" in line and "row" in line] == np.flatnonzero(~kept).tolist()
        return
    assert np.array_equal(found[good], values[good])
    assert done.changed == int((~good).sum()) == len([line for line in lines if "now" in line])
    for number in range(values.shape[1]):
        finite = values[good[:, number], number].astype(np.float64)
        expected = (
            {"median": np.median, "mean": np.mean, "constant": lambda _: 7.0}[how](finite) if len(finite) else 7.0
        )
        assert found[~good[:, number], number] == pytest.approx(expected, rel=1e-4, abs=1e-2)


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_a_median_that_is_narrowed_down_is_the_one_that_is_sorted_out(values: list[float]) -> None:
    array = np.array(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(medians, "MOST_VALUES", 0)
        found = medians.median(lambda: iter([array[:7], array[7:]]), len(array))
    ranked = np.sort(array)
    assert found == ranked[(len(array) - 1) // 2] / 2 + ranked[len(array) // 2] / 2


def test_rows_and_their_labels_lose_the_same_rows(tmp_path: Path) -> None:
    rows = np.arange(40.0).reshape(20, 2)
    rows[4, 1] = np.nan
    labels = np.arange(20) % 3
    labels[9] = 12
    np.save(tmp_path / "x_train.npy", rows)
    np.save(tmp_path / "y_train.npy", labels)
    pairs = [(tmp_path / name, tmp_path / "out" / name) for name in ("x_train.npy", "y_train.npy")]
    clean(pairs, Rules(drop_rows=True, labels="y_train", classes=3))
    expected = [row for row in range(20) if row not in (4, 9)]
    assert np.array_equal(np.load(tmp_path / "out/x_train.npy"), rows[expected])
    assert np.array_equal(np.load(tmp_path / "out/y_train.npy"), labels[expected])


def test_clipping_brings_infinities_to_the_border_and_leaves_the_rest(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[-5.0, np.inf], [0.5, -np.inf], [np.nan, 0.25]]))
    clean([(tmp_path / "x.npy", tmp_path / "out.npy")], Rules(impute=0.5, clip=(0.0, 1.0)))
    assert np.load(tmp_path / "out.npy").tolist() == [[0.0, 1.0], [0.5, 0.0], [0.5, 0.25]]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1.0, np.nan]))
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "x.npy", np.array([3.0]))
    rules = Rules(impute=0.0)
    with pytest.raises(CannotFix, match="written over"):
        clean([(tmp_path / "x.npy", tmp_path / "x.npy")], rules)
    with pytest.raises(CannotFix, match="made from something else"):
        clean([(tmp_path / "x.npy", tmp_path / "other" / "x.npy")], rules)
    assert np.load(tmp_path / "other" / "x.npy").tolist() == [3.0]
    target = tmp_path / "out" / "x.npy"
    clean([(tmp_path / "x.npy", target)], rules)
    assert clean([(tmp_path / "x.npy", target)], rules).files[0].was_there
    np.save(tmp_path / "x.npy", np.array([1.0, np.nan, 2.0]))
    with pytest.raises(CannotFix, match="made from something else"):
        clean([(tmp_path / "x.npy", target)], rules)


def test_a_column_without_any_number_has_no_median(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1.0, np.nan], [2.0, np.inf]]))
    with pytest.raises(CannotFix, match="column 1 has no finite value"):
        clean([(tmp_path / "x.npy", tmp_path / "out.npy")], Rules(impute="median"))
    assert not (tmp_path / "out.npy").exists()


KILLED = """
import sys, time
from pathlib import Path
from holdfast.data.fix import output
from holdfast.data.fix.cleaning import clean
from holdfast.data.fix.rules import Rules
real = output.Output.finish
def slow(self):
    if self.source.name == "b.npy":
        print("here", flush=True)
        time.sleep(60)
    real(self)
output.Output.finish = slow
folder = Path(sys.argv[1])
clean([(folder / name, folder / "out" / name) for name in ("a.npy", "b.npy")], Rules(impute=0.0))
"""


def test_killed_between_writing_and_renaming_it_goes_on_with_the_next_file(tmp_path: Path) -> None:
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.array([1.0, np.nan]))
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"here\n"
        running.send_signal(signal.SIGKILL)
    assert (tmp_path / "out/a.npy").exists() and not (tmp_path / "out/b.npy").exists()
    made = os.stat(tmp_path / "out/a.npy").st_mtime_ns
    time.sleep(0.01)
    done = clean([(tmp_path / name, tmp_path / "out" / name) for name in ("a.npy", "b.npy")], Rules(impute=0.0))
    assert [one.was_there for one in done.files] == [True, False]
    assert os.stat(tmp_path / "out/a.npy").st_mtime_ns == made
    assert np.load(tmp_path / "out/b.npy").tolist() == [1.0, 0.0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "a.npy", "a.npy.changes.jsonl", "b.npy", "b.npy.changes.jsonl",
    ]  # fmt: skip


def test_a_cleaned_copy_of_a_dirty_table_passes(tmp_path: Path) -> None:
    lines = [
        "age,income,city",
        *(
            f"{20 + row % 50},{1000.5 * (row % 7 + 1)},{'Rome' if row % 2 else 'Bern, old'}".replace(
                "Bern, old", '"Bern, old"'
            )
            for row in range(60)
        ),
    ]
    lines[11], lines[21], lines[31], lines[41] = "forty,5000.5,Rome", '33,NA,"Bern, old"', "33,5000.5", "33,inf,Rome"
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert audit(Request([tmp_path / "t.csv"])).breaks_training
    for number, rules in enumerate((Rules(impute="median"), Rules(drop_rows=True))):
        target = tmp_path / str(number) / "t.csv"
        clean([(tmp_path / "t.csv", target)], rules)
        report = audit(Request([target]))
        assert not report.breaks_training, report.findings
        assert report.rows == (59 if number == 0 else 56)
        assert '"Bern, old"' in target.read_text()


def test_the_header_of_a_second_file_that_was_put_behind_the_first_is_left_out(tmp_path: Path) -> None:
    """`cat a.csv b.csv` leaves it in the middle; imputed, it would be a row of medians."""
    source, target = tmp_path / "both.csv", tmp_path / "out" / "both.csv"
    rows = "".join(f"{number},{number / 2},Rome\n" for number in range(50))
    source.write_text(f"age,income,city\n{rows}age,income,city\n{rows}")
    done = clean([(source, target)], Rules("median")).files[0]
    assert (done.dropped, done.changed) == (1, 0)
    assert target.read_text() == f"age,income,city\n{rows}{rows}"
