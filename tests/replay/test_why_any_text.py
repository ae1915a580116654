"""Whatever `why` is given, it answers once, soon, and without a crash: random bytes, cut logs, cut journals."""

from __future__ import annotations

import html
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.causes import CAUSES
from holdfast.cli.errors import UserError
from holdfast.cli.recording import read_run
from holdfast.diagnosis.reading.scan import CHUNK, excerpt
from holdfast.diagnosis.verdict import diagnose_log
from holdfast.journal.writer import JournalWriter
from holdfast.views.web.report import log_report
from holdfast.views.why_json import log_as_json
from holdfast.views.why_text import Log, log_as_text
from holdfast.vocabulary import Diagnosis, Event
from tests.diagnosis.test_logs import FRAME, RAISED, SAID

PIECES = [
    *(FRAME + words + "\n" for words in RAISED), *(words + "\n" for words in SAID), "\x1b[2J\x1b]0;x\x07", "\r", "\x00", "<script>alert(1)</script>",
    "Traceback (most recent call last):\n", "During handling of the above exception, another exception occurred:\n", "  | ", "  +-+---- 1 ----\n",
    "Original Traceback (most recent call last):\n", '"""', "loss: nan\n", "loss: 1e400\n", "[rank0]: ", '{"log":"', "line 1: 2 Killed\n", "$x ${y} $$ $",
]  # fmt: skip
SOON_S = 5.0


def answered(data: bytes) -> Diagnosis:
    begun = time.thread_time()  # of the processor: whoever else runs takes no part
    answer = diagnose_log(excerpt(io.BytesIO(data)))
    assert time.thread_time() - begun < SOON_S
    told = [answer.cause] if answer.cause else []
    assert all(cause.id in CAUSES and 0 <= cause.confidence < 1 for cause in (*told, *answer.also))
    assert (answer.cause is None) == (answer.outcome == "unknown") and answer.summary
    shown = log_as_text(Log("x.log", "1 kB", ("last\x1b[31m",)), answer, False, True)
    assert shown and not set(shown) & {"\x1b", "\x07", "\x00", "\r", "\x9b"}
    page = log_report("x.log", [], answer, ["<b>"])
    assert "<script" not in page and "\x1b" not in page
    assert json.loads(log_as_json("x", answer))["also"] is not None
    return answer


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=4000))
def test_random_bytes_have_an_answer(data: bytes) -> None:
    answered(data)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.integers(0, 4000), st.integers(0, 4000), st.text(max_size=30))
def test_cut_and_shuffled_logs_have_an_answer(pieces: list[str], start: int, end: int, between: str) -> None:
    answered(between.join(pieces).encode("utf-8", "replace")[start : start + end])


@pytest.mark.parametrize(
    "unit",
    [b"A" * 50, b"(" * 50, b"[" * 50, b" " * 50, b"Error: ", b"a.b.c.", b"'x' ", b"\x1b[", b"[1,0]<stderr>:", b"1: ", b"File \"", b"=" * 50, b"\\", b"-> 1 ", b"shape[(", b"Expected ", b"2026-01-31 12:00:00 ", b"loss: "],
)  # fmt: skip
def test_long_lines_of_one_thing_are_read_in_no_time(unit: bytes) -> None:
    """Nothing here may take time that grows faster than the text: one endless line, and many short ones."""
    times = 50_000 // len(unit)
    for begin, repeated in ((b"", unit), (b"", unit + b"\n"), (b"RuntimeError: ", unit)):
        short_s, long_s = (_best_of_two(begin + repeated * times * more) for more in (1, 4))
        assert long_s < 8 * max(short_s, 0.02), "four times the text: measured 4.6 times the time at most"


def _best_of_two(data: bytes) -> float:
    took = []
    for _ in range(2):
        begun = time.thread_time()
        answered(data)
        took.append(time.thread_time() - begun)
    return min(took)


def test_a_log_larger_than_one_chunk_is_read_at_both_ends_and_between() -> None:
    filler = b"".join(b"step %d of the long run, all is well here\n" % i for i in range(3 * CHUNK // 40))
    wrong = (FRAME + "IndexError: Target 12 is out of bounds.\n").encode()
    answer = answered(filler + wrong)
    assert answer.cause is not None and answer.cause.id == "label-out-of-range"
    lines = filler.count(b"\n") + wrong.count(b"\n")
    assert answer.cause.evidence[0].text.startswith(f"line {lines}:")
    read = excerpt(io.BytesIO(filler + wrong + filler))
    assert not read.whole and any(b"Target 12" in piece.data for piece in read.pieces)
    assert sum(len(piece.data) for piece in read.pieces) < CHUNK


def test_a_log_of_nothing_but_errors_is_bounded_too() -> None:
    read = excerpt(io.BytesIO((FRAME + "KeyError: 'x'\n").encode() * (3 * CHUNK // 120)))
    assert sum(len(piece.data) for piece in read.pieces) < CHUNK


def test_journals_cut_anywhere_have_an_answer(tmp_path: Path) -> None:
    run = tmp_path / "20260131-120000-cut"
    (run / "journal").mkdir(parents=True)
    writer = JournalWriter(run / "journal", "watcher")
    writer.event(Event("run.start", 1.0, {"command": ["python", "train.py"], "script_pid": 100}))
    writer.event(Event("script.exit", 2.0, {"code": 1, "signal": None}))
    writer.close()
    whole = {path.name: path.read_bytes() for path in (run / "journal").iterdir()}
    longest = max(whole, key=lambda name: len(whole[name]))
    for end in range(0, len(whole[longest]), 7):
        (run / "journal" / longest).write_bytes(whole[longest][:end])
        try:
            assert read_run(run).diagnosis.outcome in ("failed", "unknown", "running")
        except UserError as error:
            assert str(error)
    shutil.rmtree(run)


WORDS = [sys.executable, "-m", "holdfast", "why"]


@pytest.mark.parametrize(
    ("words", "given_input", "code", "said"),
    [
        (["-"], b"", 3, "There is no text in it"),
        (["-"], b"\x00\xff" * 100, 3, "does not say"),
        (["-"], (FRAME + "KeyError: 'x'\n").encode(), 0, "train.py:51"),
        (["here"], b"", 2, "is a directory and no run"),
        (["none.log"], b"", 2, "no such log: none.log"),
        (["a/b"], b"", 2, "no such log: a/b"),
        (["nothing"], b"", 2, "no runs"),
        (["x\x01y.log"], b"", 2, "no such log"),
        (["a.log"], b"", 0, "shape-mismatch"),
        (["a.log.gz"], b"", 0, "shape-mismatch"),
        (["cut.log.gz"], b"", 3, "unknown"),
        (["a.log", "--html", "no/such/page.html"], b"", 2, "cannot write no/such/page.html"),
        (["a.log", "--json"], b"", 0, '"id": "shape-mismatch"'),
    ],
)  # fmt: skip
def test_the_command_says_one_thing_and_exits_as_promised(
    tmp_path: Path, words: list[str], given_input: bytes, code: int, said: str
) -> None:
    import gzip

    text = (FRAME + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)\n").encode()
    (tmp_path / "here").mkdir()
    (tmp_path / "a.log").write_bytes(text)
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(text))
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(text)[:20])
    done = subprocess.run(
        [*WORDS, *words], cwd=tmp_path, input=given_input, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == code, done
    assert said in (done.stdout + done.stderr).decode()
    if code == 2:
        assert done.stderr.count(b"\n") == 1 and done.stdout == b""


def test_the_page_holds_the_answer_and_nothing_of_the_log_does_anything(tmp_path: Path) -> None:
    evil = (
        FRAME
        + "ValueError: <script>alert(1)</script><img src=x onerror=alert(2)> \x1b]8;;http://x\x07 $(rm) shapes (2,) (3,)\n"
    )
    (tmp_path / "evil.log").write_text(evil)
    done = subprocess.run(
        [*WORDS, "evil.log", "--html", "page.html"], cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    page = (tmp_path / "page.html").read_text()
    assert done.returncode == 0 and b"\x1b" not in done.stdout
    assert "&lt;script&gt;" in page and "<script" not in page and "<img" not in page and "\x1b" not in page
    assert "default-src 'none'" in html.unescape(page)
