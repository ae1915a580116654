"""`holdfast log`: a run's journal as lines, of a live run, a dead one and a damaged one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.journal import JournalWriter
from holdfast.vocabulary import Event, Output, Sample
from tests.fake_training import fake_training
from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, is_gone, wait_for

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  #(?P<attempt>\d)  (?P<kind>\S+)( .*)?")
START = 1_700_000_000.0


def _recorded(path: Path, name: str = "20260101-000000-old") -> JournalWriter:
    directory = path / ".holdfast" / "runs" / name / "journal"
    directory.mkdir(parents=True)
    return JournalWriter(directory, "watcher")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _log(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    code = main(["log", *words])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def _small(place: Path) -> None:
    writer = _recorded(place)
    writer.event(Event("run.start", START, {"command": ["python", "a b.py"], "script_pid": None}))
    for step in range(100):
        at = START + step
        loss = float("nan") if step == 99 else 1.0 / (1 + step)
        series = {"train.loss": loss, "host.memory_available_bytes": 1e9, "disk[/].free_bytes": None}
        writer.samples(
            at, [Sample(name, value, at, "" if value is not None else "gone") for name, value in series.items()]
        )
        writer.samples(at, [Sample("train.rss_bytes", 5.0, at, step=step)])
    writer.output(Output("stdout", START + 5, b"secret of the script\n"))
    writer.event(Event("decision", START + 50, {"decision": "warn", "key": "k", "text": "disk /: \x1b[31mfull"}))
    writer.event(Event("action", START + 50, {"key": "k", "decision": "disk /: full", "result": "said"}))
    writer.event(Event("attempt.start", START + 60, {"attempt": 2, "reason": "killed\nby somebody"}))
    writer.event(Event("rescue.k", START + 58.5, {"k": 4, "where": "train"}))
    writer.event(Event("run.end", START + 99.5))
    writer.close()


def test_events_and_decisions_in_the_order_of_time_with_their_attempt(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _small(place)
    code, lines, err = _log(capsys)
    assert (code, err) == (0, "")
    told = [LINE.fullmatch(line) for line in lines]
    assert all(told), lines
    assert [(line["attempt"], line["kind"]) for line in told if line] == [
        ("1", "run.start"),
        ("1", "decision"),
        ("1", "action"),
        ("1", "rescue.k"),
        ("2", "attempt.start"),
        ("2", "run.end"),
    ]
    assert time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(START)) + ".000" in lines[0]
    assert 'command=["python", "a b.py"]' in lines[0] and "\x1b" not in "".join(lines)


def test_samples_are_chosen_by_name(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _small(place)
    _, lines, _ = _log(capsys, "--samples", "train.l*", "--events", "none")
    assert len(lines) == 100 and all(" train.loss " in line for line in lines)
    assert lines[0].endswith("train.loss 1") and lines[99].endswith("train.loss nan")
    _, lines, _ = _log(capsys, "--samples", "disk[/]*,train.loss", "--events", "none", "--tail", "2")
    assert [line.split("  ")[-1] for line in lines] == ["train.loss nan", "disk[/].free_bytes - (gone)"]


def test_json_is_a_valid_object_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _small(place)

    def no_constant(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    _, lines, _ = _log(capsys, "--samples", "*", "--json")
    records = [json.loads(line, parse_constant=no_constant) for line in lines]
    assert len(records) == 406
    assert records[0] == {
        "at": "2023-11-14T22:13:20.000Z",
        "attempt": 1,
        "kind": "event",
        "event": "run.start",
        "data": {"command": ["python", "a b.py"], "script_pid": None},
    }
    assert [record["step"] for record in records if record.get("name") == "train.rss_bytes"] == list(range(100))
    last = [record for record in records if record.get("name") == "train.loss"][-1]
    assert (last["value"], last["reason"], last["unit"], last["attempt"]) == (None, "nan", "", 2)


def test_since_counts_back_from_the_end_of_a_run_that_is_over(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _small(place)
    assert [line.split("  ")[2] for line in _log(capsys, "--since", "41s")[1]] == [
        "rescue.k",
        "attempt.start",
        "run.end",
    ]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(START + 59))
    assert len(_log(capsys, "--since", stamp)[1]) == 2
    assert len(_log(capsys, "--since", stamp[11:])[1]) == 2, "a time of day"
    assert len(_log(capsys, "--tail", "3")[1]) == 3 and _log(capsys, "--tail", "0")[1] == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--since", "yesterday"], "--since: 'yesterday' is no time"),
        (["--since", "25:61"], "--since: '25:61' is no time"),
        (["--tail", "-1"], "--tail"),
        (["--samples", "loss*"], "nothing in this run is called loss*; there are disk[/].free_bytes"),
        (["no-such-run"], "no such run: no-such-run"),
    ],
)
def test_misuse_is_one_line(place: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str) -> None:
    _small(place)
    code, _, err = _log(capsys, *words)
    assert code == 2 and named in err and err.count("\n") == 1


def test_what_comes_before_the_damage_is_printed_and_the_damage_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _small(place)
    (segment,) = (place / ".holdfast/runs/20260101-000000-old/journal").iterdir()
    data = bytearray(segment.read_bytes())
    whole = _log(capsys)[1]
    data[-60] ^= 0xFF
    segment.write_bytes(data)
    code, lines, err = _log(capsys)
    assert code == 0 and set(lines) < set(whole) and len(lines) >= 3
    assert "damaged at byte" in err and err.startswith("holdfast: watcher-00000001.seg")
    segment.write_bytes(b"x" * 100)
    code, lines, err = _log(capsys)
    assert (code, lines) == (2, []) and "nothing is recorded" in err


def test_samples_stream_in_bounded_memory(place: Path) -> None:
    """Ten times as many take no more. A million were measured so: 22 MiB."""
    peaks = []
    for rows in (300, 3_000):
        writer = _recorded(place, f"20260101-00000{len(peaks)}-{rows}")
        for number in range(rows):
            at = START + number
            writer.samples(at, [Sample(f"signal.{i}_ratio", number + i / 7, at) for i in range(100)])
        writer.close()
        asked = [*HOLDFAST, "log", str(rows), "--samples", "*"]
        printed = subprocess.Popen(asked, stdout=subprocess.PIPE, cwd=place)
        assert printed.stdout is not None
        count = sum(1 for _ in printed.stdout)
        _, status, used = os.wait4(printed.pid, 0)
        printed.returncode = status
        printed.stdout.close()
        assert (status, count) == (0, rows * 100)
        peaks.append(used.ru_maxrss / 1024)
    assert peaks[1] < peaks[0] + 8, f"{peaks} MiB"


def test_a_closed_pipe_is_no_traceback(place: Path) -> None:
    writer = _recorded(place)
    for number in range(2000):
        writer.samples(START + number, [Sample(f"s{i}_ratio", 1.0, START + number) for i in range(20)])
    writer.close()
    asked = subprocess.Popen(
        [*HOLDFAST, "log", "--samples", "*"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place
    )
    assert asked.stdout is not None and asked.stderr is not None
    asked.stdout.readline()
    asked.stdout.close()
    assert asked.stderr.read() == b""
    asked.wait(PATIENCE_S)
    asked.stderr.close()


def _follow(workplace: Workplace, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [*HOLDFAST, "log", "--follow", *words], cwd=workplace.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    workplace.started.append(process)
    return process


def _wait_for_a_run(workplace: Workplace) -> None:
    wait_for(lambda: list((workplace.path / ".holdfast" / "runs").glob("*/journal/watcher-*.seg")))


def test_following_ends_with_the_run_and_has_seen_every_attempt(workplace: Workplace) -> None:
    run = workplace.start(fake_training(workplace, "if ATTEMPT == 1 and step == 25: die()"))
    _wait_for_a_run(workplace)
    followed = _follow(workplace, "--samples", "train.steps_count")
    out, err = followed.communicate(timeout=PATIENCE_S)
    assert (followed.returncode, err) == (0, b"")
    assert run.wait(PATIENCE_S) == 0
    lines = [line for line in map(LINE.fullmatch, out.decode().splitlines()) if line]
    kinds = [line["kind"] for line in lines]
    assert (
        kinds[-1] == "run.end" and kinds.count("run.start") == kinds.count("attempt.start") == 1 and "sample" in kinds
    )
    assert [line["attempt"] for line in lines if line["kind"] == "run.end"] == ["2"]
    again = subprocess.run([*HOLDFAST, "log", "--samples", "train.steps_count"], cwd=workplace.path, capture_output=True, check=True)  # fmt: skip
    assert sorted(out.splitlines()) == sorted(again.stdout.splitlines()), "nothing twice, nothing lost"


def test_ctrl_c_ends_following_with_130_and_no_word(workplace: Workplace) -> None:
    workplace.start(workplace.script("import time; time.sleep(60)"))
    _wait_for_a_run(workplace)
    followed = _follow(workplace)
    assert followed.stdout is not None
    followed.stdout.readline()
    followed.send_signal(signal.SIGINT)
    _, err = followed.communicate(timeout=PATIENCE_S)
    assert (followed.returncode, err) == (130, b"")


def test_following_a_run_whose_processes_were_all_killed_ends(workplace: Workplace) -> None:
    run = workplace.start(workplace.script("import time; time.sleep(60)"))
    _wait_for_a_run(workplace)
    watcher, script = workplace.watcher_of(run.pid), workplace.script_of(run.pid)
    followed = _follow(workplace)
    assert followed.stdout is not None
    followed.stdout.readline()
    run.kill()
    watcher.kill()
    script.kill()
    out, _ = followed.communicate(timeout=PATIENCE_S)
    assert followed.returncode == 0 and b"run.end" not in out
    assert is_gone(script.pid)


def test_it_is_among_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    assert "holdfast log " in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["log", "--help"])
    assert ended.value.code == 0
    assert "holdfast log --follow" in capsys.readouterr().out
