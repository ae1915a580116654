"""A quick audit parses only lines whose form does not prove them: it finds what parsing all of them finds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.data.audit import Request, audit
from holdfast.data.audit.report import Report
from holdfast.data.audit.tables import Wanted
from holdfast.data.formats import csv_proof, csv_text
from holdfast.data.formats.csv_proof import proof_of, proven

PLAIN = ("1", "-2.5", "0.125", "3e5", "-1.25E-07", "12.", ".5", " 4", "123456789012345")
ODD = (
    "",
    "NA",
    "?",
    "-",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 400,
    "1e-400",
    "+3",
    "1.2.3",
    "1e",
    "--1",
    "4O",
    "1 2",
    '"7"',
    "0x10",
)
WORDS = ("Rome", "São Paulo", "", "NA", "5", '"a, b"', '"a ""b"""', '"two\nlines"')
ENDS = ("\n", "\r\n", "\n\n")


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Mostly clean lines of two columns of numbers and one of text, with some of what people write."""
    delimiter = draw(st.sampled_from(",;|\t"))
    number = st.sampled_from(PLAIN * 8 + ODD)
    word = st.sampled_from(WORDS[:5] * 6 + WORDS)
    lines = [delimiter.join(["a", "b", "c"])]
    for _ in range(draw(st.integers(1, 25))):
        fields = [draw(number), draw(number), draw(word).replace(",", delimiter)]
        lines.append(delimiter.join(fields[: draw(st.sampled_from((3,) * 30 + (1, 2)))]))
    end = draw(st.sampled_from(ENDS[:1] * 3 + ENDS))
    return end.join(lines) + draw(st.sampled_from((end, end, "")))


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(csv_text, "BLOCK_BYTES", 120)
        monkey.setattr(csv_proof, "PIECE_BYTES", 40)
        yield


def quick(path: Path) -> Report:
    return replace(audit(Request([path], wanted=Wanted(is_quick=True))), seconds=0.0)


@settings(max_examples=100)
@given(tables())
@example('a,b,c\n1,2,"x\n3,4,y\n"\n5,6,z\n')  # what stands in quotes is no line
def test_the_same_is_found_as_by_parsing_all(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(text, newline="")
        found = quick(path)
        with patch.object(csv_text, "proof_of", lambda *_: None):
            assert found == quick(path)
    event(f"breaks training: {found.breaks_training}")


def test_lines_that_are_proven_are_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{row},{row / 7}\n" for row in range(1, 1000)) + "nan,1\n")
    parse = csv_text._parsed
    with patch.object(csv_text, "_parsed", side_effect=parse) as parsed:
        report = quick(tmp_path / "t.csv")
    assert [(one.id, one.column, one.count, one.where) for one in report.findings] == [("non-finite", "a", 1, (999,))]
    assert report.rows == 1000
    assert (
        sum(len(call.args[0]) for call in parsed.call_args_list[1:]) <= 2 * csv_proof.PIECE_BYTES
    )  # but for the start


@pytest.mark.parametrize("field", PLAIN)
def test_what_is_proven_is_finite(field: str) -> None:
    proof = proof_of(",", (True,))
    assert proof is not None
    assert [verdict for verdict, *_ in proven(f"{field}\n".encode(), proof)] == [True]
    assert np.isfinite(float(field))


@pytest.mark.parametrize("field", [one for one in ODD if "\n" not in one])
def test_what_may_not_be_a_finite_number_is_left_to_the_parser(field: str) -> None:
    proof = proof_of(",", (True,))
    assert proof is not None
    assert [verdict for verdict, *_ in proven(f"{field}\n".encode(), proof)] == [False]


def test_a_table_too_wide_for_the_expression_is_parsed(tmp_path: Path) -> None:
    width = csv_proof.MOST_COLUMNS + 1
    line = ",".join(["1"] * width)
    (tmp_path / "t.csv").write_text(",".join(f"c{n}" for n in range(width)) + f"\n{line}\n{line[:-1]}inf\n")
    report = quick(tmp_path / "t.csv")
    assert (report.rows, [one.column for one in report.findings]) == (2, [f"c{width - 1}"])


@pytest.mark.parametrize("is_quick", [False, True])
def test_words_that_fill_whole_blocks_of_a_column_of_numbers_are_found(tmp_path: Path, is_quick: bool) -> None:
    rows = [f"{row},{row}" for row in range(2000)]
    rows[500:560] = [f"{row},oops" for row in range(500, 560)]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    report = audit(Request([tmp_path / "t.csv"], wanted=Wanted(is_quick=is_quick)))
    assert [(one.id, one.column, one.count, one.where[0]) for one in report.findings if one.breaks_training] == [
        ("dtype", "b", 60, 500)
    ]
