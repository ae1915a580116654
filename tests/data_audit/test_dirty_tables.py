"""Tables as people have them, and their clean versions: what would break training is found, the clean one passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

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
