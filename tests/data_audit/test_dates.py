"""Dates that are written in several ways in one column, and columns that only look so."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from holdfast.data.audit import Request, audit
from holdfast.data.audit.dates import ANY, WAYS
from holdfast.data.audit.report import Finding

DAYS = [date(2023, 1, 1) + timedelta(days=5 * number) for number in range(120)]
ISO = [f"{day:%Y-%m-%d}" for day in DAYS]


def findings(tmp_path: Path, words: list[str]) -> list[Finding]:
    lines = [f'{number}.5,"{word}"\n' for number, word in enumerate(words)]
    (tmp_path / "t.csv").write_text("size,day\n" + "".join(lines))
    return audit(Request([tmp_path / "t.csv"])).findings


def test_another_way_is_advice_with_its_rows(tmp_path: Path) -> None:
    words = list(ISO)
    words[7], words[50], words[90] = "03.02.2023", f"{DAYS[50]:%d.%m.%Y}", "Mar 27, 2024"
    (found,) = findings(tmp_path, words)
    assert (found.id, found.column, found.count, found.where) == ("dtype", "day", 3, (7, 50, 90))
    assert not found.breaks_training
    assert found.text == "dates written in 3 ways: 117 as 2024-01-31, 2 as 31.01.2024, 1 as Jan 31, 2024"


def test_days_before_months_and_behind_them_are_two_ways(tmp_path: Path) -> None:
    words = [f"{day:%d/%m/%Y}" for day in DAYS]
    assert findings(tmp_path, words) == []  # days of 12 and less are taken for what the others are
    words[3] = "04/28/2023"
    (found,) = findings(tmp_path, words)
    assert (found.count, found.where) == (1, (3,))


@pytest.mark.parametrize(
    "words",
    [
        ISO,
        [f"{day:%Y-%m-%d} 10:30" if number % 2 else f"{day:%Y-%m-%d}" for number, day in enumerate(DAYS)],
        [f"{day:%m/%d/%Y}" for day in DAYS],
        [f"{1 + number % 9}.{number % 12}.{number}" for number in range(120)],  # versions
        [f"10.0.{number % 12}.{number}" for number in range(120)],  # addresses
        [f"shipped {day:%d.%m.%Y}" if number % 2 else f"ordered {day:%Y-%m-%d}" for number, day in enumerate(DAYS)],
        [*ISO[:20], "31.01.2023", *(f"note {number}" for number in range(99))],  # text with some dates among it
    ],
    ids=["one way", "with and without a time", "months first", "versions", "addresses", "sentences", "notes"],
)  # fmt: skip
def test_what_is_no_mixture_is_no_advice(tmp_path: Path, words: list[str]) -> None:
    assert [one for one in findings(tmp_path, words) if "dates" in one.text] == []


def test_each_way_is_known_by_its_own_example() -> None:
    assert all(ANY.match(written) for written in WAYS)
