"""A run that was stopped, preempted or lost with its machine is continued by hand."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.journal import Journal
from holdfast.supervisor.script_checkpoints import newest_own, words_to_resume
from tests.fake_training import fake_training
from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, wait_for

WAITS = "if step == 35 and not KEEP['resume']: print('here', flush=True), time.sleep(200)"
SAVES_ON_TERM = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: (save(35), sys.exit(143)))"


def _stopped(workplace: Workplace, *options: str, everything: bool = False) -> tuple[list[str], dict[str, object]]:
    """A run that ended at step 35, with a checkpoint of step 30 or, asked kindly, of step 35."""
    command = fake_training(workplace, WAITS, SAVES_ON_TERM)
    process = workplace.start(command, *options)
    wait_for(lambda: process.stdout and process.stdout.readline() == b"here\n")
    if everything:
        (run,) = (workplace.path / ".holdfast/runs").iterdir()
        wait_for(lambda: Journal(run / "journal").events("run.start"))  # a thread writes it, beside the script
        script, watcher = workplace.script_of(process.pid), workplace.watcher_of(process.pid)
        for pid in (process.pid, watcher.pid, script.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
    else:
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143
    return command, workplace.why()


def _say(workplace: Workplace, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [*HOLDFAST, "run", *words], cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False
    )
    return done.returncode, done.stdout.decode() + done.stderr.decode()


def test_a_preempted_run_says_how_to_go_on_and_does(workplace: Workplace) -> None:
    _, answer = _stopped(workplace, "--checkpoint", "30")
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "terminated")  # type: ignore[index]
    told = shlex.split(str(answer["resume"]))
    assert told == ["holdfast", "run", "--checkpoint", "30", f"--resume={answer['run']}"]
    assert "It can be resumed from step 35:" in workplace.why_text()
    code, said = _say(workplace, *told[2:])
    assert code == 0
    assert said.splitlines() == [
        "attempt 1 from 35 k None", "trained 60", f"holdfast: resuming {answer['run']} from step 35",
    ]  # fmt: skip
    assert workplace.why()["outcome"] == "completed"
    assert f"resumed  from {answer['run']}" in workplace.why_text()


def test_a_run_whose_machine_went_down_goes_on(workplace: Workplace) -> None:
    """Everything is killed at once: the record has no ending."""
    command, answer = _stopped(workplace, everything=True)
    assert answer["outcome"] == "unknown"
    code, said = _say(workplace, "--resume", *command)
    assert (code, said.splitlines()[0]) == (0, "attempt 1 from 30 k None")


def test_the_old_run_keeps_its_checkpoints_and_they_take_no_room_twice(workplace: Workplace) -> None:
    _stopped(workplace)
    (old,) = (workplace.path / ".holdfast/runs").iterdir()
    kept = {path.parent.name: path.stat().st_ino for path in (old / "checkpoints").glob("*/manifest.json")}
    ended = workplace.run(fake_training(workplace, "if ATTEMPT == 1: die()"), "--resume", "--max-restarts", "0")
    assert ended.returncode == 137, "before it had saved one of its own: a run keeps its last two"
    (new,) = (run for run in (workplace.path / ".holdfast/runs").iterdir() if run != old)
    taken_over = {path.parent.name: path.stat().st_ino for path in (new / "checkpoints").glob("*/manifest.json")}
    assert taken_over and taken_over.items() <= kept.items()
    assert {path.parent.name for path in (old / "checkpoints").glob("*/manifest.json")} == set(kept)


def test_a_resumed_run_can_be_resumed(workplace: Workplace) -> None:
    """Even when it was killed before it had saved anything itself."""
    _stopped(workplace)
    command = fake_training(workplace, "if ATTEMPT == 1: die()")
    done = workplace.run(command, "--resume", "--max-restarts", "0")
    assert done.returncode == 137
    answer = workplace.why()
    assert answer["resume"]
    fake_training(workplace)
    code, said = _say(workplace, "--resume", *command)
    assert (code, said.splitlines()[0]) == (0, "attempt 1 from 35 k None")


def test_what_cannot_be_resumed_is_named(workplace: Workplace) -> None:
    refused: list[tuple[list[str], str]] = [
        (["--resume", "true"], "no run of true here"),
        (["--resume=yesterday", "true"], "no such run: yesterday"),
        (["--resume", "--policy", "advise", "true"], "with --policy advise Holdfast restores nothing"),
        (["--resume", "--checkpoint", "off", "true"], "with --checkpoint off Holdfast restores nothing"),
        (["--resume", "python", "train.py"], "no run of python train.py here"),
    ]
    command = fake_training(workplace, "if step == 5: raise ValueError('early')")
    workplace.run(command)
    refused.append((["--resume", *command], "left no checkpoint"))
    for words, named in refused:
        code, said = _say(workplace, *words)
        assert (code, said.count("\n")) == (2, 1), said
        assert named in said
    assert len(list((workplace.path / ".holdfast/runs").iterdir())) == 1


def test_a_run_that_finished_or_is_still_going_is_not_resumed(workplace: Workplace) -> None:
    command = fake_training(workplace)
    assert workplace.run(command).returncode == 0
    code, said = _say(workplace, "--resume", *command)
    assert code == 2 and "has finished; start without --resume" in said
    command = fake_training(workplace, "if step == 35: print('here', flush=True), time.sleep(200)")
    process = workplace.start(command)
    wait_for(lambda: process.stdout and process.stdout.readline() == b"here\n")
    code, said = _say(workplace, "--resume", *command)
    assert code == 2 and "is still going" in said


def test_another_command_resumes_a_run_only_by_its_name(workplace: Workplace) -> None:
    command, answer = _stopped(workplace)
    other = [*command, "--verbose"]
    code, said = _say(workplace, "--resume", *other)
    assert code == 2 and "no run of" in said
    code, said = _say(workplace, f"--resume={answer['run']}", *other)
    assert code == 0, said


def test_an_option_of_the_same_name_stays_the_scripts(workplace: Workplace) -> None:
    done = workplace.run([*workplace.script("import sys; print(sys.argv[1:])"), "--resume"])
    assert done.stdout == b"['--resume']\n"


# -- scripts that resume by an option of their own

BY_ITSELF = """
    import os, signal, sys, time, holdfast
    begin = int(open(sys.argv[2]).read()) if len(sys.argv) > 1 else 0
    print(sys.argv[1:], "from", begin, flush=True)
    for step in range(begin + 1, 61):
        time.sleep(0.01)
        holdfast.step()
        if step % 10 == 0:
            os.makedirs("own", exist_ok=True)
            open(f"own/{step}.pt", "w").write(str(step))
            os.utime(f"own/{step}.pt")
        if step == 25 and begin == 0:
            time.sleep(0.2); os.kill(os.getpid(), int(os.environ.get("BY", "9")))
    print("trained", flush=True)
"""


@pytest.mark.parametrize("pattern", ["{checkpoint:own/*.pt}", "{checkpoint}"])
def test_its_own_checkpoint_is_given_to_the_next_attempt(workplace: Workplace, pattern: str) -> None:
    (workplace.path / "own").mkdir()
    (workplace.path / "own/old.pt").write_text("7")
    os.utime(workplace.path / "own/old.pt", (1e9, 1e9))
    done = workplace.run(workplace.script(BY_ITSELF), "--resume-args", f"--load {pattern}")
    assert done.returncode == 0, done.stderr
    place = f"{workplace.path}/own/20.pt"
    assert done.stdout.decode() == f"[] from 0\n['--load', '{place}'] from 20\ntrained\n"
    assert b"starting again from the last checkpoint" in done.stderr
    assert not list((workplace.path / ".holdfast/runs").glob("*/checkpoints/*"))


def test_its_own_checkpoint_is_given_by_hand_too(workplace: Workplace) -> None:
    command, options = workplace.script(BY_ITSELF), ["--resume-args", "--load {checkpoint:own/*.pt}"]
    assert workplace.run(command, *options, env={**os.environ, "BY": "15"}).returncode == 143
    told = shlex.split(workplace.why()["resume"])
    code, said = _say(workplace, *told[2:])
    assert code == 0 and "own/20.pt'] from 20\n" in said


def test_a_torn_or_older_file_is_passed_over(tmp_path: Path) -> None:
    import zipfile

    for name in ("a.pt", "b.pt"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("data.pkl", "x" * 1000)
    (tmp_path / "b.pt").write_bytes((tmp_path / "b.pt").read_bytes()[:500])
    os.utime(tmp_path / "a.pt", (2000, 2000))
    os.utime(tmp_path / "b.pt", (3000, 3000))
    found = newest_own("--load {checkpoint}", tmp_path, since=1000)
    assert found is not None and found.path == str(tmp_path / "a.pt")
    assert words_to_resume("--load={checkpoint:*.pt} -v", tmp_path, 1000) == [f"--load={tmp_path}/a.pt", "-v"]
    assert words_to_resume("--load {checkpoint}", tmp_path, since=2500) == []
    assert words_to_resume("--resume auto", tmp_path, since=2500) == ["--resume", "auto"]


@pytest.mark.parametrize("wrong", ["--load {ckpt}", "", "--load '{checkpoint}"])
def test_resume_args_that_cannot_work_are_named_at_once(workplace: Workplace, wrong: str) -> None:
    code, said = _say(workplace, "--resume-args", wrong, "true")
    assert code == 2 and "--resume-args" in said
