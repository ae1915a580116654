"""Every format, against NumPy on the whole array: the same counts at the same places."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from holdfast.data.audit import Request, audit
from holdfast.data.audit.duplicates import _is_any_twice
from holdfast.data.audit.tables import Wanted
from holdfast.data.formats import csv_text, npy, stores
from holdfast.data.formats.contract import Array
from holdfast.data.formats.examples_wire import alike, features_of
from tests.data_audit.written import WRITERS, example, floats, integers

Writer = Callable[[Path, Array], Path]
VALUES = st.floats(-1e6, 1e6, width=32) | st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 3.0e38, -3.0e38])
TABLES = arrays.arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 5)), elements=VALUES)


@pytest.fixture(autouse=True)
def _small_parts() -> Iterator[None]:
    """So that a table of some rows is cut as one of gigabytes is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(npy, "PART_BYTES", 64)
        patch.setattr(stores, "PART_BYTES", 64)
        patch.setattr(csv_text, "BLOCK_BYTES", 100)
        patch.setattr("holdfast.data.audit.columns.BLOCK_ELEMENTS", 16)
        yield


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@settings(max_examples=12)
@given(values=TABLES)
def test_the_same_counts_at_the_same_places(write: Writer, quick: bool, values: Array) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "table", values)
        report = audit(Request([path], wanted=Wanted(is_quick=quick)))
    found = {
        finding.column.rpartition(".")[2].lstrip("c"): (finding.count, list(finding.where))
        for finding in report.findings
        if finding.id == "non-finite"
    }
    found = {number if number.isdigit() else "0": of for number, of in found.items()}
    bad = ~np.isfinite(values)
    expected = {
        str(number): (int(bad[:, number].sum()), np.flatnonzero(bad[:, number])[:20].tolist())
        for number in range(values.shape[1])
        if bad[:, number].any()
    }
    assert found == expected
    assert report.rows == len(values)
    assert report.breaks_training == bool(bad.any())


@settings(max_examples=60)
@given(values=TABLES)
def test_mean_deviation_and_extremes_are_those_of_the_finite_values(values: Array) -> None:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "table.npy", values)
        table = audit(Request([Path(folder) / "table.npy"])).tables[0]
    assert len(table.columns) == values.shape[1]
    for number, column in enumerate(table.columns):
        finite = values[np.isfinite(values[:, number]), number].astype(np.float64)
        if len(finite):
            assert (column.low, column.high) == (finite.min(), finite.max())
            scale = float(np.abs(finite).max()) + 1e-30
            assert column.mean == pytest.approx(finite.mean(), abs=1e-5 * scale)
            assert column.deviation == pytest.approx(finite.std(), abs=1e-4 * scale)
        else:
            assert (column.low, column.high, column.mean) == (None, None, None)


@settings(max_examples=40)
@given(values=arrays.arrays(np.float32, st.tuples(st.integers(1, 40), st.just(4)), elements=st.integers(0, 1)))
def test_rows_that_are_there_before_are_counted_as_numpy_counts_them(values: Array) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for write in (WRITERS[0], WRITERS[3], WRITERS[5]):
            report = audit(Request([write(Path(folder) / "table", values)]))
            found = [finding for finding in report.findings if finding.id == "duplicate"]
            _, first = np.unique(values, axis=0, return_index=True)
            repeated = sorted(set(range(len(values))) - set(first.tolist()))
            assert sum(finding.count for finding in found) == len(repeated), write.__name__
            assert [row for finding in found for row in finding.where] == repeated[:20], write.__name__


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 3))
def test_a_hash_that_is_there_twice_is_found_among_others_of_its_slot(high: list[int], low: int) -> None:
    values = np.array([number << 40 | low for number in high], np.uint64)  # one share, one slot
    assert _is_any_twice([values[:5], values[5:]]) is (len(set(high)) < len(high))


INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2)


@given(st.lists(st.tuples(INTEGERS, st.floats(width=32)), min_size=1, max_size=6))
def test_records_that_are_taken_apart_together_hold_what_each_holds(rows: list[tuple[list[int], float]]) -> None:
    records = [example({"n": integers(numbers), "x": floats(np.array([value]))}) for numbers, value in rows]
    records = [record for record in records if len(record) == len(records[0])]
    together = alike(np.frombuffer(b"".join(records), np.uint8).reshape(len(records), -1))
    event("together" if together is not None else "one by one")
    if len(records) == 1:
        assert together is not None
    alone = [features_of(record) for record in records]
    for name in ("n", "x") if together is not None else ():
        assert together[name].tobytes() == np.stack([np.asarray(one[name].values) for one in alone]).tobytes()
