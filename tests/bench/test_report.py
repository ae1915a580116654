"""docs/measured.md is what `python -m bench.report` makes of the dated results."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import report


def test_the_page_is_what_the_command_makes() -> None:
    assert report.PAGE.read_text() == report.page(), "run: python -m bench.report"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "ROOT", tmp_path)
    folder = tmp_path / report.BENCH
    folder.mkdir(parents=True)
    return folder


JOURNAL = next(figure for figure in report.FIGURES if figure.what.startswith("journal"))


def test_the_latest_result_counts(results: Path) -> None:
    for name, size in (("2026-11-15.txt", 3.0), ("2026-11-15-evening.txt", 2.0), ("2026-11-14-late.txt", 1.0)):
        (results / name).write_text(f"journal: {size} MB an hour at 1 Hz\njournal: {size}5 MB an hour at 1 Hz\n")
    match, path = report.latest(JOURNAL)
    assert (match["size"], path.name) == ("2.05", "2026-11-15-evening.txt")


def test_a_figure_without_a_result_is_an_error(results: Path) -> None:
    (results / "2026-11-15.txt").write_text("weight: unknown\n")
    with pytest.raises(report.NotMeasured, match="journal"):
        report.latest(JOURNAL)
