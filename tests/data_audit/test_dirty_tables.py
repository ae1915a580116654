"""Tables as people have them, and their clean versions: what would break training is found, the clean one passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.data.audit import Request, audit
from holdfast.data.audit.tables import Wanted

Rows = list[list[str]]
NAMES = ["age", "income", "height", "city", "label"]


def clean_rows() -> Rows:
    chance = random.Random(4)
    return [
        [str(chance.randint(18, 90)), f"{chance.uniform(900, 4000):.2f}", f"{chance.gauss(170, 9):.1f}",
         chance.choice(["Rome", "Oslo", "São Paulo"]), str(chance.randint(0, 2))]
        for _ in range(400)
    ]  # fmt: skip


def typo(rows: Rows) -> None:
    rows[17][0] = "4O"  # the letter


def missing_marks(rows: Rows) -> None:
    for row, mark in enumerate(("NA", "?", "null", "-", "", "N/A", "None")):
        rows[50 + row][1] = mark


def mixed_types(rows: Rows) -> None:
    for row in range(30):
        rows[3 * row][2] = f"{rows[3 * row][2]} cm"


def decimal_commas(rows: Rows) -> None:
    for row in rows:
        row[2] = '"' + row[2].replace(".", ",") + '"'


def shifted(rows: Rows) -> None:
    rows[8] = rows[8][1:]
    rows[9] = ["", *rows[9]]


def shifted_within_the_columns(rows: Rows) -> None:
    rows[8] = [*rows[8][1:], rows[8][0]]


def wrong_label(rows: Rows) -> None:
    rows[33][4] = "3"


def fractional_label(rows: Rows) -> None:
    rows[34][4] = "1.5"


def infinite(rows: Rows) -> None:
    rows[5][1] = "inf"
    rows[6][1] = "NaN"


def some_thousands_with_commas(rows: Rows) -> None:
    for row in rows[::3]:
        row[1] = f'"1,{int(float(row[1])) % 900 + 100}"'


def header_again(rows: Rows) -> None:
    rows[200] = list(NAMES)


def spreadsheet_errors(rows: Rows) -> None:
    rows[7][1], rows[9][2] = "#DIV/0!", "#REF!"


DIRT: dict[str, tuple[Callable[[Rows], None], dict[tuple[str, str], tuple[int, list[int]]]]] = {
    "typo": (typo, {("dtype", "age"): (1, [17])}),
    "missing marks": (missing_marks, {("non-finite", "income"): (7, list(range(50, 57)))}),
    "mixed types": (mixed_types, {("dtype", "height"): (30, [3 * row for row in range(20)])}),
    "decimal commas": (decimal_commas, {("dtype", "height"): (400, list(range(20)))}),
    "shifted": (shifted, {("shape", ""): (1, [8]), ("shape", " "): (1, [9])}),
    "shifted within": (shifted_within_the_columns, {
        ("dtype", "height"): (1, [8]), ("label-range", "label"): (1, [8]),
    }),
    "wrong label": (wrong_label, {("label-range", "label"): (1, [33])}),
    "fractional label": (fractional_label, {("label-range", "label"): (1, [34])}),
    "some thousands with commas": (some_thousands_with_commas, {("dtype", "income"): (134, list(range(0, 60, 3)))}),
    "header again": (header_again, {("dtype", name): (1, [200]) for name in ("age", "income", "height", "label")}),
    "spreadsheet errors": (spreadsheet_errors, {("non-finite", "income"): (1, [7]), ("non-finite", "height"): (1, [9])}),
    "infinite": (infinite, {("non-finite", "income"): (2, [5, 6])}),
}  # fmt: skip


def write(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    path.write_text("\n".join(delimiter.join(row) for row in [NAMES, *rows]) + "\n")
    return path


@pytest.mark.parametrize("name", DIRT)
def test_what_would_break_training_is_found_at_its_place(name: str, tmp_path: Path) -> None:
    spoil, expected = DIRT[name]
    rows = clean_rows()
    spoil(rows)
    report = audit(Request([write(tmp_path / "t.csv", rows)], wanted=Wanted("label", 3)))
    assert report.rows == 400
    found: dict[tuple[str, str], tuple[int, list[int]]] = {}
    for one in report.findings:
        if one.breaks_training:
            key = one.id, one.column + " " * ((one.id, one.column) in found)
            found[key] = one.count, list(one.where)
    assert found == expected


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_clean_one_passes(delimiter: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", clean_rows(), delimiter)
    assert audit(Request([path], wanted=Wanted("label", 3))).findings == []


def test_natural_oddities_are_no_alarm(tmp_path: Path) -> None:
    """Names in quotes with commas and line breaks, tickets that are sometimes numbers, cabins that are mostly not there."""
    chance = random.Random(1)
    lines = ["name,ticket,cabin,fare"]
    for row in range(300):
        ticket = str(chance.randint(1000, 99999)) if row % 3 else f"A/{row}"
        lines.append(f'"Doe, {row}\nJr.",{ticket},{"C" + str(row) if row % 4 == 0 else ""},{chance.uniform(5, 90):.2f}')
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    report = audit(Request([tmp_path / "t.csv"]))
    assert report.rows == 300
    assert not report.breaks_training
    assert {(one.id, one.column) for one in report.findings} == {("dtype", "ticket"), ("non-finite", "cabin")}


def test_a_table_without_a_header_is_read_from_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("".join(f"{row}.5,{row * 3 % 7}\n" for row in range(30)))
    report = audit(Request([tmp_path / "t.csv"], wanted=Wanted("1", 7)))
    assert (report.rows, report.findings) == (30, [])


def species(labels: list[str]) -> str:
    return "size,species\n" + "".join(f"{row}.25,{label}\n" for row, label in enumerate(labels))


def test_labels_that_differ_in_case_alone_are_classes_nobody_meant(tmp_path: Path) -> None:
    labels = ["cat", "dog", "bird"] * 50
    (tmp_path / "t.csv").write_text(species(labels))
    assert audit(Request([tmp_path / "t.csv"], wanted=Wanted("species"))).findings == []
    labels[10], labels[20], labels[31] = "Cat", "dog ", "DOG"
    (tmp_path / "t.csv").write_text(species(labels))
    (told,) = [
        one for one in audit(Request([tmp_path / "t.csv"], wanted=Wanted("species"))).findings if one.breaks_training
    ]
    assert (told.id, told.column, told.count) == ("label-range", "species", 3) and '"Cat" for "cat"' in told.text
    unasked = audit(Request([tmp_path / "t.csv"]))
    assert not unasked.breaks_training and [one.id for one in unasked.findings] == ["dtype"]


def test_two_spellings_that_are_both_frequent_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(species(["US", "us"] * 60))
    assert audit(Request([tmp_path / "t.csv"])).findings == []


def test_rows_that_cannot_be_parsed_are_no_duplicates_of_each_other(tmp_path: Path) -> None:
    rows = clean_rows()
    for row in rows[100:103]:
        row.append("")
    report = audit(Request([write(tmp_path / "t.csv", rows)]))
    assert [(one.id, one.count) for one in report.findings] == [("shape", 3)]


@pytest.mark.parametrize("content", [b"", "größe,label\n1,0\n".encode("latin-1"), "a,label\n1,0\n".encode("utf-16")])
def test_a_file_that_cannot_be_read_is_told_also_where_a_column_was_asked_for(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    assert main(["audit", str(tmp_path / "t.csv"), "--labels", "label", "--dir", str(tmp_path)]) == 1
    assert "unreadable" in capsys.readouterr().out
