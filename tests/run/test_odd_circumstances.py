"""What a stranger's machine may look like, and Holdfast must not be the reason the run failed there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, wait_for


def test_lines_of_both_streams_keep_their_order_in_one_file(workplace: Workplace) -> None:
    command = workplace.script("import os\nfor i in range(500): os.write(1 + i % 2, b'%d\\n' % i)")
    with open(workplace.path / "log", "wb") as log:
        workplace.run(command, capture_output=False, stdout=log, stderr=subprocess.STDOUT)
    assert (workplace.path / "log").read_text().split() == [str(i) for i in range(500)]


def test_output_that_cannot_be_written_is_said_and_the_script_goes_on(workplace: Workplace) -> None:
    with open("/dev/full", "wb") as full:
        done = workplace.run(
            [sys.executable, "-c", "print(1)"], capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.stderr == b"holdfast: stdout cannot be written any more: No space left on device\n"


def test_a_signal_by_name_stops_the_job(workplace: Workplace) -> None:
    """`pkill holdfast` must not be taken for a scheduler that signals everybody: only the relay bears that name."""
    process = workplace.start(["sleep", "200"])
    watcher = workplace.watcher_of(process.pid)
    wait_for(lambda: (watcher.name(), "".join(watcher.cmdline())) == ("hf-watcher", "hf-watcher"))
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 143


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGVTALRM, signal.SIGRTMIN + 3])
def test_any_signal_that_ends_a_program_reaches_the_script(workplace: Workplace, number: int) -> None:
    process = workplace.start(["sleep", "200"])
    workplace.script_of(process.pid)
    os.kill(process.pid, number)
    assert process.wait(PATIENCE_S) == 128 + number


def test_a_working_directory_that_is_gone_does_not_matter(workplace: Workplace) -> None:
    done = subprocess.run(
        ["bash", "-c", f"mkdir gone && cd gone && rmdir ../gone && {' '.join(HOLDFAST)} run echo hi"],
        cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False,
        env={**os.environ, "TMPDIR": str(workplace.path)},
    )  # fmt: skip
    assert (done.stdout, done.returncode) == (b"hi\n", 0), done.stderr


@pytest.mark.root
def test_a_machine_on_which_nothing_can_be_written(workplace: Workplace) -> None:
    """As `docker run --read-only`: no state, no temporary directory. The script does not notice."""
    folders = " ".join(sorted({"/tmp", "/var", "/dev/shm", str(Path.cwd()), str(workplace.path)}))
    script = (
        f"mount -o remount,ro,bind /; for m in {folders}; do [ -d $m ] && mount --bind $m $m && "
        f"mount -o remount,ro,bind $m; done; cd {workplace.path}; "
        f"{' '.join(HOLDFAST)} run sh -c 'for i in 1 2 3 4; do echo $i; sleep .3; done; exit 3'; echo code $?"
    )
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "bash", "-c", script],
        capture_output=True, timeout=PATIENCE_S, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.stdout == b"1\n2\n3\n4\ncode 3\n", done.stderr
    assert b"nothing of this run is recorded" in done.stderr and b"Traceback" not in done.stderr


def test_observe_leaves_what_the_script_started_on_purpose(workplace: Workplace) -> None:
    command = ["bash", "-c", "setsid nohup sleep 200 > /dev/null 2>&1 & echo $!"]
    done = workplace.run(command, "--policy", "observe")
    assert (done.returncode, done.stderr) == (0, b"")
    left = psutil.Process(int(done.stdout))
    assert left.status() != psutil.STATUS_ZOMBIE
    left.kill()


def test_many_inherited_descriptors_do_no_harm(workplace: Workplace) -> None:
    code = (
        "import os, subprocess, sys, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "fds = [os.dup(0) for _ in range(1500)]\n"
        "[os.set_inheritable(fd, True) for fd in fds]\n"
        f"sys.exit(subprocess.call({[*HOLDFAST, 'run', 'sh', '-c', 'exit 3']!r}, close_fds=False))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=workplace.path, check=False, timeout=PATIENCE_S).returncode
        == 3
    )


def test_a_traceback_is_recorded_though_the_pager_stalls(workplace: Workplace) -> None:
    command = workplace.script("""
        import sys, time
        sys.stdout.write("x" * 2_000_000); sys.stdout.flush()
        raise ValueError("after a full pipe")
    """)
    words = " ".join([*HOLDFAST, "run", *command])
    subprocess.run(
        ["bash", "-c", f"{words} 2>/dev/null | (sleep 4; wc -c)"], cwd=workplace.path, timeout=PATIENCE_S, check=True
    )
    assert workplace.why()["cause"]["id"] == "unhandled-exception"


def test_a_huge_command_line_is_no_trouble(workplace: Workplace) -> None:
    done = workplace.run([sys.executable, "-c", "print(1)", *["x" * 100_000] * 12, "two\nlines"])
    assert done.stdout == b"1\n"
    assert workplace.why()["outcome"] == "completed"
    told = workplace.why_text().splitlines()
    assert len(told) > 2 and all(len(line) <= 80 for line in told)


def test_why_says_one_line_about_output_it_cannot_write(workplace: Workplace) -> None:
    workplace.run(["true"])
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*HOLDFAST, "why"], cwd=workplace.path, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"holdfast: No space left on device\n")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"]])
def test_help_whose_reader_has_gone_says_nothing(workplace: Workplace, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as gone:
        done = subprocess.run([*HOLDFAST, *words], cwd=workplace.path, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import sys, traceback\ntry: raise MemoryError('CUDA out of memory')\nexcept MemoryError: traceback.print_exc()\n"
         "[print(i, file=sys.stderr) for i in range(500)]\nsys.exit('early stopping')", None),
        ("import logging\ntry: open('nope')\nexcept OSError: logging.exception('ignored')\nraise SystemExit(3)", None),
        ("import sys; sys.exit(139)", None),
        ("print('WARNING: could not sync: No space left on device (will retry)')\n{}['lr']", "unhandled-exception"),
        ("import signal, os\nsignal.signal(10, lambda *_: None); os.kill(os.getpid(), 10)\nraise ValueError", "unhandled-exception"),
        ("def f(:\n  pass", "unhandled-exception"),
        ("raise ExceptionGroup('several', [ValueError('one'), KeyError('two')])", "unhandled-exception"),
    ],
)  # fmt: skip
def test_verdicts_are_not_surer_than_their_evidence(workplace: Workplace, source: str, cause: str | None) -> None:
    (workplace.path / "train.py").write_text(source)
    assert workplace.run([sys.executable, "train.py"]).returncode != 0
    answer = workplace.why()
    assert (answer["cause"] and answer["cause"]["id"]) == cause, answer
    if cause:
        assert any("train.py:" in item["text"] for item in answer["cause"]["evidence"])


def test_a_signal_that_was_handled_does_not_spoil_a_success(workplace: Workplace) -> None:
    source = 'trap "got=1" USR1; echo ready; while [ -z "$got" ]; do sleep 0.05; done; exit 0'
    process = workplace.start(["bash", "-c", source])
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGUSR1)
    assert process.wait(PATIENCE_S) == 0
    assert workplace.why()["outcome"] == "completed"
    assert "SIGUSR1 arrived" in workplace.why_text()
