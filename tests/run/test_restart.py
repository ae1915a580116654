"""A script that was killed is started again where it stopped; one that would only fail again is not."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from lab.case import Limits
from tests.fake_training import fake_training
from tests.run.test_terminal import OnTerminal, stop_and_continue
from tests.staging import staged
from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, is_gone, wait_for

KILLED_ONCE = "if ATTEMPT == 1 and step == 25: die()"


def _lines(out: bytes) -> list[str]:
    return out.decode().splitlines()


def test_a_killed_script_goes_on_at_its_checkpoint_and_the_run_is_recovered(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, KILLED_ONCE))
    assert done.returncode == 0, done.stderr
    assert _lines(done.stdout) == ["attempt 1 from 0 k None", "attempt 2 from 20 k None", "trained 60"]
    line, *closing = _lines(done.stderr)
    assert closing[:2] == [
        "holdfast: finished; before that: killed by somebody at step 25",
        "holdfast: started again once",
    ]
    assert line.startswith("holdfast: killed by somebody at step 25; starting again from step 20 (5 steps, ")
    assert line.endswith(" s lost), attempt 2")
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"], answer["also"]) == ("recovered", "killed", [])
    (action,) = answer["actions"]
    assert action["result"] == "started as attempt 2" and "step 20" in action["decision"]
    assert workplace.why_text().startswith("The run finished; it was started again once.")


def test_without_a_checkpoint_a_short_beginning_is_done_again(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, "if ATTEMPT == 1 and step == 5: die()"))
    assert done.returncode == 0
    assert _lines(done.stdout)[1] == "attempt 2 from 0 k None"
    assert b"starting again from the beginning (" in done.stderr


def test_a_bug_is_not_tried_again(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, "if step == 25: raise ValueError('labels and logits differ')"))
    assert (done.returncode, done.stdout) == (1, b"attempt 1 from 0 k None\n")
    what, deeds, more = _lines(done.stderr)[-3:]
    assert what.startswith("holdfast: ") and "labels and logits differ" in what
    assert deeds == "holdfast: not started again: it would fail again the same way"
    assert more.startswith("holdfast: for more: holdfast why ")
    assert done.stderr.count(b"holdfast: ") == 3
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"], answer["actions"]) == ("failed", "unhandled-exception", [])
    assert answer["resume"].startswith("holdfast run --resume=")


def test_a_crash_at_the_same_step_a_second_time_is_the_last(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, "if step == 25: die(signal.SIGSEGV)"))
    assert done.returncode == 139
    assert [line for line in _lines(done.stdout) if line.startswith("attempt")] == [
        "attempt 1 from 0 k None",
        "attempt 2 from 20 k None",
    ]
    *_, last, _, deeds, _ = _lines(done.stderr)
    assert last.startswith("holdfast: native code crashed at step ")
    assert "not started again: it failed the same way" in last
    assert deeds.startswith("holdfast: started again once; not started again: it failed the same way")
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("failed", "native-crash")


def test_restarts_without_a_newer_checkpoint_are_counted(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, "if step == 25: die()"), "--max-restarts", "1")
    assert done.returncode == 137
    assert done.stdout.count(b"attempt") == 2
    assert b"not started again: started again once without a newer checkpoint" in done.stderr


def test_progress_makes_the_count_begin_again(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, "if step == 12 * ATTEMPT: die()"), "--max-restarts", "1")
    assert (done.returncode, done.stdout.count(b"attempt")) == (0, 6), done.stderr
    assert "started again 5 times" in workplace.why_text()


@pytest.mark.parametrize("options", [["--policy", "advise"], ["--policy", "observe"], ["--max-restarts", "0"]])
def test_nothing_is_started_again_where_that_was_not_asked_for(workplace: Workplace, options: list[str]) -> None:
    source = "import holdfast, os, time\nfor i in range(20): holdfast.step(); time.sleep(.01)\ntime.sleep(.2); os.kill(os.getpid(), 9)"
    done = workplace.run(workplace.script(source), *options)
    assert done.returncode == 137
    said = _lines(done.stderr)
    assert len(said) == (0 if "observe" in options else 3) and not any("starting again" in line for line in said)
    assert workplace.why()["outcome"] == "failed"


def test_what_was_never_seen_training_is_not_started_again(workplace: Workplace) -> None:
    done = workplace.run(["bash", "-c", "echo once; kill -9 $$"])
    assert (done.returncode, done.stdout, done.stderr) == (137, b"once\n", b"")


@pytest.mark.parametrize("fed", ["pipe", "file"])
def test_a_script_that_read_its_input_is_not_started_again(workplace: Workplace, fed: str) -> None:
    command = fake_training(
        workplace, KILLED_ONCE, before="import sys; print(sys.stdin.readline(), end='', flush=True)"
    )
    (workplace.path / "given").write_text("some words\n")
    if fed == "pipe":
        done = workplace.run(command, input=b"some words\n")
    else:
        with open(workplace.path / "given", "rb") as given:
            done = workplace.run(command, stdin=given)
    assert done.returncode == 137
    assert done.stdout.startswith(b"some words\nattempt 1")
    assert b"not started again: it has read its standard input" in done.stderr


@pytest.mark.parametrize("fed", ["idle pipe", "file"])
def test_input_that_was_not_read_does_not_matter(workplace: Workplace, fed: str) -> None:
    (workplace.path / "given").write_text("some words\n")
    with open(workplace.path / "given", "rb") as given:
        stdin = given if fed == "file" else subprocess.PIPE
        process = workplace.start(fake_training(workplace, KILLED_ONCE), stdin=stdin)
        assert process.wait(PATIENCE_S) == 0


def test_what_an_attempt_left_running_is_stopped_before_the_next(workplace: Workplace) -> None:
    fault = """
if ATTEMPT == 1 and step == 25:
    import subprocess
    print("helper", subprocess.Popen(["sleep", "60"], start_new_session=True).pid, flush=True)
    die()
if ATTEMPT == 2 and step == 25:
    print("gone", not os.path.exists(f"/proc/{open('helper').read()}"), flush=True)
"""
    fault = fault.replace('print("helper", subprocess.Popen', 'open("helper", "w").write(str(subprocess.Popen')
    fault = fault.replace("start_new_session=True).pid, flush=True)", "start_new_session=True).pid))")
    done = workplace.run(fake_training(workplace, fault))
    assert done.returncode == 0, done.stderr
    assert "gone True" in _lines(done.stdout)


def test_an_ignored_hangup_stays_ignored_in_every_attempt(workplace: Workplace) -> None:
    command = fake_training(
        workplace,
        KILLED_ONCE,
        before="import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)",
    )
    done = subprocess.run(
        ["nohup", *HOLDFAST, "run", *command], cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert _lines(done.stdout).count("True") == 2


def test_a_signal_reaches_the_attempt_that_runs(workplace: Workplace) -> None:
    fault = "if step == 25: die() if ATTEMPT == 1 else (print('here', flush=True), time.sleep(200))"
    process = workplace.start(fake_training(workplace, fault))
    assert process.stdout is not None
    wait_for(lambda: process.stdout and process.stdout.readline() == b"here\n")
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 143
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "terminated")
    assert [cause["id"] for cause in answer["also"]] == ["killed"]
    assert answer["resume"].endswith(f"--resume={answer['run']}")


@pytest.mark.parametrize(("number", "cause"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
def test_one_that_comes_between_two_attempts_ends_the_run(workplace: Workplace, number: int, cause: str) -> None:
    fault = "if step == 25: die()"
    process = workplace.start(fake_training(workplace, fault))
    assert process.stderr is not None
    wait_for(lambda: process.stderr and b"starting again" in process.stderr.readline())
    wait_for(lambda: process.stderr and b"starting again" in process.stderr.readline())  # a pause of 5 s now
    os.kill(process.pid, number)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert out.count(b"attempt") == 2, "it was not waited for the third"
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", cause)
    assert [cause["id"] for cause in answer["also"]] == ["killed"]


def test_a_kill_that_follows_a_request_to_stop_is_no_accident(workplace: Workplace) -> None:
    """As schedulers do: SIGTERM, and SIGKILL for what has not gone by then."""
    fault = "if step == 25: print('here', flush=True), time.sleep(200)"
    before = "import signal; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))"
    process = workplace.start(fake_training(workplace, fault, before))
    assert process.stdout is not None
    wait_for(lambda: process.stdout and process.stdout.readline() == b"here\n")
    script = workplace.script_of(process.pid)
    os.kill(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == b"asked\n"
    script.kill()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (137, b""), err


# -- on a terminal


def test_on_a_terminal_the_next_attempt_has_it_whole(workplace: Workplace) -> None:
    """Its modes as at first, though the one before died with them changed, and Ctrl-C for it."""
    fault = """
if step == 25:
    if ATTEMPT == 1:
        import tty
        tty.setraw(0)
        die()
    import termios
    print("cooked", bool(termios.tcgetattr(0)[3] & termios.ICANON), os.isatty(1), flush=True)
    time.sleep(30)
"""
    terminal = OnTerminal(workplace, fake_training(workplace, fault))
    terminal.wait_to_see(b"starting again from step 20")
    terminal.wait_to_see(b"attempt 2 from 20")
    terminal.wait_to_see(b"cooked True True")
    terminal.type(b"\x03")
    assert terminal.end() == 130
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "interrupted")


def test_ctrl_c_between_two_attempts_ends_the_run(workplace: Workplace) -> None:
    terminal = OnTerminal(workplace, fake_training(workplace, "if step == 25: die()"))
    terminal.wait_to_see(b"attempt 2 from 20")
    terminal.wait_to_see(b"attempt 3\r\n")
    terminal.type(b"\x03")
    assert terminal.end() == 130
    assert workplace.why()["cause"]["id"] == "interrupted"


def test_ctrl_z_stops_the_attempt_that_runs(workplace: Workplace) -> None:
    fault = """
if ATTEMPT == 1 and step == 25: die()
if ATTEMPT == 2 and step == 30:
    print("ready", os.getpid(), "!", flush=True)
    while not os.path.exists("enough"): time.sleep(0.02)
"""
    words = " ".join([*HOLDFAST, "run", *fake_training(workplace, fault)])
    shell = OnTerminal(workplace, ["--norc", "-i"], program=["env", "PS1=# ", "bash"])
    shell.type(f"{words}\r".encode())
    stop_and_continue(shell, workplace)
    shell.wait_to_see(b"trained 60")
    shell.wait_to_see(b"# ")
    shell.type(b"exit\r")
    assert shell.end() == 0


def test_an_answered_prompt_is_not_asked_again(workplace: Workplace) -> None:
    command = fake_training(workplace, KILLED_ONCE, before="input('sure? ')")
    terminal = OnTerminal(workplace, command)
    terminal.wait_to_see(b"sure? ")
    terminal.type(b"yes\r")
    terminal.wait_to_see(b"not started again: it has read its standard input")
    assert terminal.end() == 137


def test_keys_nobody_read_do_not_matter(workplace: Workplace) -> None:
    terminal = OnTerminal(workplace, fake_training(workplace, KILLED_ONCE))
    terminal.wait_to_see(b"attempt 1")
    terminal.type(b"\r\r")
    terminal.wait_to_see(b"trained 60")
    assert terminal.end() == 0


# -- Holdfast's own processes


def test_a_watcher_killed_between_two_attempts_leaves_the_right_ending(workplace: Workplace) -> None:
    process = workplace.start(fake_training(workplace, "if step == 25: die()"))
    assert process.stderr is not None
    watcher = workplace.watcher_of(process.pid)
    for _ in range(2):
        wait_for(lambda: process.stderr and b"starting again" in process.stderr.readline())
    time.sleep(1.5)  # what was left behind has been looked for
    watcher.kill()
    assert process.wait(PATIENCE_S) == 137
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("failed", "killed")


def test_a_watcher_killed_in_the_second_attempt_does_not_end_it(workplace: Workplace) -> None:
    fault = KILLED_ONCE + "\nif ATTEMPT == 2 and step == 30: print('here', flush=True), time.sleep(2)"
    process = workplace.start(fake_training(workplace, fault))
    assert process.stdout is not None
    wait_for(lambda: process.stdout and process.stdout.readline() == b"here\n")
    workplace.watcher_of(process.pid).kill()
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, b"trained 60\n")
    assert workplace.why()["outcome"] == "recovered"


def test_a_relay_killed_before_a_restart_does_not_prevent_it(workplace: Workplace) -> None:
    fault = "if ATTEMPT == 1 and step == 25: print('here', flush=True), time.sleep(2), die()"
    process = workplace.start(fake_training(workplace, fault))
    assert process.stdout is not None
    wait_for(lambda: process.stdout and process.stdout.readline() == b"here\n")
    watcher = workplace.watcher_of(process.pid)
    process.kill()
    wait_for(lambda: is_gone(watcher.pid))
    assert workplace.why()["outcome"] == "recovered"
    (log,) = (workplace.path / ".holdfast/runs").glob("*/output.log")
    assert log.read_text().endswith("trained 60\n")


# -- memory


@pytest.mark.root
@pytest.mark.alone
def test_killed_for_memory_it_goes_on_in_smaller_steps(workplace: Workplace) -> None:
    """A whole step needs more than the container has; in two pieces it fits."""
    fault = """
k = SETTINGS["rescue"]["k"] or 1
if step == 1: _recorder().event("rescue.k", k=k, where="train")
if step == 25: time.sleep(0.3); bytearray((200 << 20) // k); time.sleep(0.1)
"""
    command = fake_training(workplace, fault)
    with staged(Limits(memory=180 << 20), "restart") as stage:
        words = stage.wrap([*HOLDFAST, "run", "--", *command])
        done = subprocess.run(words, cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert _lines(done.stdout) == ["attempt 1 from 0 k None", "attempt 2 from 20 k 2", "trained 60"]
    assert (
        b"killed for memory at step 25; starting again from step 20 in 2 micro-batches a step (5 steps" in done.stderr
    )
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "container-memory-limit")


def test_a_worker_that_died_may_have_been_bad_luck(workplace: Workplace) -> None:
    said = "DataLoader worker (pid 17) is killed by signal: Killed."
    done = workplace.run(
        fake_training(workplace, f"if ATTEMPT == 1 and step == 25: time.sleep(.2); raise RuntimeError({said!r})")
    )
    assert done.returncode == 0, done.stderr
    assert b"holdfast: a worker process died at step 25; starting again from step 20" in done.stderr
    listed = subprocess.run([*HOLDFAST, "runs"], cwd=workplace.path, capture_output=True, check=True).stdout.decode()
    assert "recovered  worker-died  0" in listed


# -- a terminal that is only read from


def test_with_its_output_in_a_file_it_is_started_again(workplace: Workplace) -> None:
    terminal = OnTerminal(workplace, fake_training(workplace, KILLED_ONCE), redirect="> log 2>&1")
    assert terminal.end() == 0
    assert "starting again from step 20" in (workplace.path / "log").read_text()


def test_in_the_background_the_shells_own_reading_is_not_the_jobs(workplace: Workplace) -> None:
    words = " ".join([*HOLDFAST, "run", *fake_training(workplace, KILLED_ONCE)])
    shell = OnTerminal(workplace, ["--norc", "-i"], program=["env", "PS1=# ", "bash"])
    shell.type(f"{words} > log 2>&1 &\r".encode())
    wait_for(lambda: (workplace.path / "log").exists() and "attempt 1" in (workplace.path / "log").read_text())
    shell.type(b"echo typed\r")
    wait_for(lambda: "trained 60" in (workplace.path / "log").read_text())
    shell.type(b"exit\r")
    shell.end()


def test_an_answer_from_a_terminal_is_not_asked_for_again(workplace: Workplace) -> None:
    command = fake_training(workplace, KILLED_ONCE, before="print('sure?', flush=True); input()")
    terminal = OnTerminal(workplace, command, redirect="> log 2>&1")
    wait_for(lambda: (workplace.path / "log").exists() and "sure?" in (workplace.path / "log").read_text())
    terminal.type(b"yes\r")
    assert terminal.end() == 137
    assert "it has read its standard input" in (workplace.path / "log").read_text()


CANNOT_GO_ON = """
if ATTEMPT == 1 and step == 11: open(os.path.join(KEEP["directory"], "start-1.json"), "w").close()
if ATTEMPT == 1 and step == 25: die()
if ATTEMPT == 2: raise store.mismatch(_recorder(), "the data came in another order")
"""


def test_a_state_that_cannot_be_put_back_is_begun_anew_and_said(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, CANNOT_GO_ON))
    assert done.returncode == 0, done.stderr
    assert _lines(done.stdout) == [
        "attempt 1 from 0 k None", "attempt 2 from 20 k None", "attempt 3 from 0 k None", "trained 60",
    ]  # fmt: skip
    _, refused, again, *_ = _lines(done.stderr)
    assert refused == (
        "holdfast: the state at the checkpoint cannot be put back: the data came in another order. Nothing was trained."
    )
    assert again.startswith("holdfast: it could not go on from its checkpoint; starting again from the beginning (")
    assert workplace.why()["outcome"] == "recovered"
