"""What is drawn of a run: few points, no extreme lost, nothing told twice, and nothing secret."""

from __future__ import annotations

import base64
import json
from array import array
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.journal import JournalWriter
from holdfast.views.web.course import POINTS, thinned
from holdfast.views.web.differences import differences
from holdfast.views.web.document import KEPT_UPDATES, RunDocument
from holdfast.views.web.markup import join, tag, verbatim
from holdfast.views.web.printed import KEPT_BYTES, LINE_CHARACTERS, as_shown
from holdfast.views.web.sections import processes
from holdfast.vocabulary import Diagnosis, Event, Output, Sample
from tests.journal.journal_making import FakeClock
from tests.web.runs import HOSTILE, SECRET, failed_run, finished_run, row

VALUES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(nan)), min_size=1, max_size=400)


def document_of(run: Path) -> RunDocument:
    document = RunDocument(run)
    document.update()
    return document


def numbers(text: str) -> list[float]:
    return list(array("f", base64.b64decode(text)))


# -- the points of a signal


@given(VALUES, st.integers(3, 60))
def test_thinning_keeps_the_lowest_the_highest_and_the_ends_in_the_order_of_time(
    values: list[float], points: int
) -> None:
    times = [float(second) for second in range(len(values))]
    kept_times, kept = thinned(times, values, points)
    finite = [value for value in values if not isnan(value)]
    assert len(kept) <= max(points, 3) and kept_times == sorted(kept_times)
    assert kept_times[-1] == times[-1]
    assert (
        [min(kept, key=_low), max(kept, key=_high)] == [min(finite), max(finite)] if finite else all(map(isnan, kept))
    )


def _low(value: float) -> float:
    return inf if isnan(value) else value


def _high(value: float) -> float:
    return -inf if isnan(value) else value


def test_a_day_has_few_points_and_its_one_spike(tmp_path: Path) -> None:
    clock = FakeClock()
    writer = JournalWriter(tmp_path / "journal", "watcher", clock=clock)
    writer.event(Event("run.start", clock.now, {"command": ["python", "train.py"]}))
    for second in range(20_000):
        clock.now += 1.0
        writer.samples(clock.now, row(clock.now, train__loss=99.0 if second == 7777 else 1.0 + second % 3))
        writer.tend(clock.now)
    writer.close()
    (signal,) = document_of(tmp_path).whole()["signals"].values()
    assert max(numbers(signal["v"])) == 99.0
    assert 200 < len(numbers(signal["v"])) <= POINTS
    assert numbers(signal["t"])[-1] == pytest.approx(20_000, abs=31)


def test_a_gap_stays_a_gap_and_a_value_that_is_no_number_is_marked(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "journal", "watcher")
    writer.event(Event("run.start", 100.0, {}))
    for at, value in ((101.0, 1.0), (102.0, None), (103.0, nan), (104.0, inf), (105.0, 2.0)):
        writer.samples(at, row(at, train__loss=value))
    writer.close()
    signal = document_of(tmp_path).whole()["signals"]["train.loss"]
    assert [isnan(value) for value in numbers(signal["v"])] == [False, True, True, False, False]
    assert signal["not_finite"] == [3.0, 4.0]


def test_readings_of_one_row_lie_beside_each_other(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "journal", "watcher")
    writer.event(Event("run.start", 100.0, {}))
    for at in (101.0, 102.0):
        writer.samples(at, [Sample("train.loss", 1.0, at, step=1), Sample("train.loss", 2.0, at, step=2)])
    writer.close()
    signal = document_of(tmp_path).whole()["signals"]["train.loss"]
    assert list(zip(numbers(signal["t"]), numbers(signal["v"]), strict=True)) == [
        (0.5, 1.0),
        (1.0, 2.0),
        (1.5, 1.0),
        (2.0, 2.0),
    ]


# -- a run that goes on


def test_what_is_new_comes_once_whatever_the_journal_does_with_the_old(tmp_path: Path) -> None:
    clock = FakeClock()
    writer = JournalWriter(tmp_path / "journal", "watcher", clock=clock, segment_s=50, keep_raw_s=50, bucket_s=10)
    document = RunDocument(tmp_path)
    seen: list[float] = []
    version = 0
    for second in range(400):
        clock.now += 1.0
        writer.samples(clock.now, row(clock.now, train__loss=float(second)))
        writer.tend(clock.now)
        if second % 7 == 0:
            document.update()
            new = document.since(version)
            assert new is not None
            seen += numbers(new["signals"].get("train.loss", {"v": ""})["v"])
            version = new["version"]
    writer.close()
    assert seen == [float(second) for second in range(400)]


def test_a_page_that_was_away_for_long_gets_all_of_it_again(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "journal", "watcher")
    document = RunDocument(tmp_path)
    for second in range(KEPT_UPDATES + 5):
        writer.samples(100.0 + second, row(100.0 + second, train__loss=1.0))
        document.update()
    assert document.since(1) is None and document.since(document.version + 1) is None
    latest = document.since(document.version - 1)
    assert latest is not None and numbers(latest["signals"]["train.loss"]["v"]) == [1.0]
    assert not document.update()


# -- what is shown


def test_the_document_of_a_failed_run_has_charts_moments_and_no_secret(tmp_path: Path) -> None:
    document = document_of(failed_run(tmp_path, seconds=60))
    whole = document.whole(more=False)
    charts = {chart["id"]: chart for chart in whole["charts"]}
    assert {"loss", "gradient", "step", "waiting", "job", "host", "gpu"} <= set(charts)
    assert [line["label"] for line in charts["gpu"]["lines"]] == ["gpu0", "limit"]
    assert charts["gpu"]["lines"][1]["limit"]
    drawn = {line["signal"] for chart in whole["charts"] if not chart["more"] for line in chart["lines"]}
    assert set(whole["signals"]) == drawn
    assert {moment["weight"] for moment in whole["moments"]} >= {"note", "warn", "bad"}
    text = json.dumps(whole, allow_nan=False) + "".join(said for _, said in document.printed.streams())
    assert "--api-key '***'" in text and SECRET not in text and "sk-1234" not in text


def test_what_was_printed_is_shown_without_escapes_secrets_or_endless_lines() -> None:
    shown = as_shown(HOSTILE)
    assert "red link" in shown and "\x1b" not in shown and "\u202e" not in shown and SECRET not in shown
    assert max(map(len, shown.split("\n"))) < LINE_CHARACTERS + 60
    assert as_shown(b"10%\r20%\r\n30%\r") == "20%\n30%"
    cut = as_shown(SECRET.encode() + b" and on", cut=True)
    assert cut.strip() == "and on", "the rest of a word that was cut may be the rest of a secret"
    assert len(as_shown(b"y" * KEPT_BYTES, cut=True)) > 0


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>&", tag("i", "x\x1b"), title='"><script>') == (
        '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;<i>x·</i></p>'
    )
    assert join(["<", tag("br")]) == "&lt;<br>"
    with pytest.raises(ValueError, match="end the element"):
        verbatim("x</SCRIPT>")


def test_processes_that_have_gone_are_marked() -> None:
    came = [
        Event("process.appeared", 1.0, {"pid": pid, "parent": pid - 1, "name": "p", "command": f"p {pid}"})
        for pid in (7, 8)
    ]
    shown = processes([*came, Event("process.gone", 2.0, {"pid": 8})])
    assert "p 7</li>" in shown and "p 8 (ended)</li>" in shown


# -- two runs


def test_what_differs_between_two_runs(tmp_path: Path) -> None:
    first, second = document_of(failed_run(tmp_path, seconds=60)), document_of(finished_run(tmp_path))
    rows = {
        name: (a, b)
        for name, a, b in differences(first, second, (Diagnosis("failed", None), Diagnosis("completed", None)))
    }
    assert rows["outcome"] == ("failed", "completed")
    assert rows["torch"] == ("2.13.0", "2.12.0")
    assert rows["memory of the job, at most"] == ("5.0 GiB", "4.0 GiB")
    assert rows["argument api-key"] == ("***", "***")
    assert rows["machine"] == ("ada-box, 8 cores", "")


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [
        (["python", "t.py", "--lr", "0.1"], ["python", "t.py", "--lr=0.2"], {"argument lr": ("0.1", "0.2")}),
        (["python", "t.py", "--a", "1", "--b", "2"], ["python", "t.py", "--b", "2", "--a", "1"], {}),
        (["python", "t.py", "--fp16"], ["python", "t.py"], {"argument fp16": ("given", "not given")}),
        (["python", "t.py", "lr=1"], ["python", "u.py", "lr=1"], {"command": ("python t.py", "python u.py")}),
    ],
)
def test_arguments_are_compared_by_name(
    first: list[str], second: list[str], differs: dict[str, Any], tmp_path: Path
) -> None:
    documents = []
    for name, command in (("a", first), ("b", second)):
        writer = JournalWriter(tmp_path / name / "journal", "watcher")
        writer.event(Event("run.start", 100.0, {"command": command}))
        writer.output(Output("stdout", 100.0, b"x"))
        writer.close()
        documents.append(document_of(tmp_path / name))
    nothing = Diagnosis("completed", None)
    rows = differences(documents[0], documents[1], (nothing, nothing))
    assert {name: (a, b) for name, a, b in rows if a != b} == differs
