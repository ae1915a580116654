"""Rows of the screen, and the screen as plain text."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from math import inf, isnan, nan
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.control_socket import NAME
from holdfast.views.overview import overview
from holdfast.views.timeline import Moment
from holdfast.views.top.curves import drawn, over_time
from holdfast.views.top.panels import ASCII, UNICODE, Canvas, Verdict, curve_rows, memory_rows, moment_rows
from tests.story import GIB, story
from tests.views.recorded_run import NOW, RecordedRun

CANVAS = Canvas(60, UNICODE)


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "▁▂▃▄▅▆▇█"),
        ([3.0, 3.0], "▁▁"),
        ([1.0, nan, 2.0, inf], "▁x█x"),
        ([nan], "x"),
        ([], ""),
    ],
)
def test_a_curve_is_drawn_in_one_row(values: list[float], row: str) -> None:
    assert drawn(values, 1, UNICODE.heights) == [row]


@pytest.mark.parametrize(
    ("points", "width", "values"),
    [
        ([(0, 1.0), (1, 3.0), (2, 5.0), (3, 7.0)], 9, [1.0, 3.0, 5.0, 7.0]),
        ([(0, 1.0), (1, 3.0), (2, 5.0), (3, 7.0)], 2, [2.0, 6.0]),
        (
            [(0, 1.0), (97, 2.0), (98, 3.0), (99, 4.0)],
            4,
            [1.0, 1.0, 1.0, 3.0],
        ),  # the last minute is no longer than it was
        ([(5, 1.0), (5, 3.0)], 9, [2.0, 2.0]),
        ([], 9, []),
        ([(0, 1.0)], 0, []),
    ],
)
def test_a_column_is_a_stretch_of_time(points: list[tuple[float, float]], width: int, values: list[float]) -> None:
    assert over_time(points, width) == values


def test_a_value_that_is_no_number_is_not_hidden_by_its_neighbours() -> None:
    assert isnan(over_time([(0, 1.0), (1, nan), (2, 1.0), (3, 1.0)], 2)[0])


def test_a_curve_is_drawn_in_several_rows_where_there_is_room() -> None:
    assert drawn([0.0, 1.0, 2.0, 3.0, nan], 2, UNICODE.heights) == ["  ▃█ ", "▁▆██x"]
    rows = curve_rows(overview("r", story(None, train__loss=[3.0, 1.0, 2.0])), replace(CANVAS, height=6))
    assert [row.text for row in rows] == [
        "loss       2         █",
        "  high     3         █",
        "                     █ ▅",
        "                     █ █",
        "  low      1         █▁█",
    ]


def test_a_loss_that_is_no_number_is_bad() -> None:
    row = curve_rows(overview("r", story(None, train__loss=[1.0, nan])), CANVAS)[0]
    assert (row.text, row.weight) == ("loss       nan       ▁x", "bad")


@pytest.mark.parametrize(("used", "weight"), [(0.5, None), (0.97, "warn")])
def test_a_host_that_is_nearly_full_is_marked(used: float, weight: str | None) -> None:
    window = story(None, host__memory_total_bytes=[32 * GIB], host__memory_available_bytes=[32 * GIB * (1 - used)])
    assert memory_rows(overview("r", window), CANVAS)[0].weight == weight


def test_a_budget_that_is_used_up_is_full() -> None:
    row = memory_rows(
        overview("r", story(None, job__held_bytes=[3 * GIB], job__memory_budget_bytes=[2 * GIB])), CANVAS
    )[0]
    assert row.text.endswith("█ 150%  3 GiB of 2 GiB (its budget)  full") and row.weight == "warn"


def test_a_gpu_that_is_full_is_not_since_frameworks_take_all_of_it() -> None:
    window = story(None, gpu0__memory_total_bytes=[8 * GIB], gpu0__memory_used_bytes=[7.9 * GIB])
    assert memory_rows(overview("r", window), CANVAS)[0].weight is None


def test_warnings_are_told_whole_and_notes_in_one_line() -> None:
    long = "memory grows 2 MiB a step: 19 more bytearray objects, held by train.kept"
    rows = moment_rows([Moment(NOW, long, "warn"), Moment(NOW, long, "note")], CANVAS)
    assert [row.text[11:].strip() for row in rows] == [
        "memory grows 2 MiB a step: 19 more bytearray",
        "objects, held by train.kept",
        "memory grows 2 MiB a step: 19 more bytearray obj…",
    ]


def test_a_run_of_days_tells_the_day() -> None:
    rows = moment_rows([Moment(NOW, "a", "note"), Moment(NOW + 86400, "b", "note")], CANVAS)
    assert rows[0].text[:6] != rows[1].text[:6]
    assert len(rows[0].text) == len("11-16 19:40:00 · a")


# -- without a screen


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    run = RecordedRun(tmp_path)
    run.trains(20)
    run.decided("warn", "leak", "memory grows 2 MiB a step")
    run.ends()
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["top", *words]) == 0
    return capsys.readouterr().out


def test_once_prints_it_as_text(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--once", "--dir", str(directory))
    assert text.startswith(
        "20261116-120000-baseline  completed after 20 s\npython train.py --api-key '***'\n\nThe run finished."
    )
    for part in ("step 160  epoch 1", "25%  4 GiB of 16 GiB", "loss       0.8 ", "! memory grows 2 MiB a step"):
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize("why", ["no terminal", "TERM=dumb"])
def test_where_there_is_no_screen_it_prints_once(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "TERM=dumb":
        monkeypatch.setenv("TERM", "dumb")
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert "The run finished." in printed(capsys, "baseline", "--dir", str(directory))


def test_only_the_screen_needs_textual(directory: Path) -> None:
    """Nor do the other verbs: what is imported is looked at in a process of its own."""
    program = (
        "import sys; from holdfast.cli import main; main(['top', '--once']); main(['why']); main(['runs'])\n"
        "import holdfast.cli.run, holdfast.cli.log, holdfast.cli.stacks\n"
        "print('loaded:', sorted({'textual', 'rich', 'plotly', 'starlette', 'uvicorn'} & set(sys.modules)))"
    )
    environment = {**os.environ, "HOLDFAST_DIR": str(directory), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded: []\n")
    assert "####" in done.stdout and done.stdout.isascii()


def test_a_run_that_goes_on_comes_before_a_later_one_that_has_ended(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    going = RecordedRun(directory, "20261115-100000-going", live=True)
    going.trains(3)
    (going.close() / NAME).touch()
    (directory / "runs" / "20261116-120000-baseline" / NAME).touch()  # left by a watcher that was killed
    assert printed(capsys, "--once", "--dir", str(directory)).startswith("20261115-100000-going  running for")


def test_where_nothing_is_recorded_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--dir", str(tmp_path)]) == 2
    assert "no runs in" in capsys.readouterr().err
    (tmp_path / "runs" / "20261116-120000-empty" / "journal").mkdir(parents=True)
    assert "nothing is recorded yet" in printed(capsys, "--once", "--dir", str(tmp_path))


def test_in_ascii_every_mark_is_ascii() -> None:
    drawn = [ASCII.full, ASCII.empty, ASCII.heights, ASCII.more, *ASCII.marks.values()]
    assert "".join(drawn).isascii()
    assert replace(CANVAS, symbols=ASCII).symbols.marks.keys() == UNICODE.marks.keys()
    assert Verdict("running", "x").noticed == ()
