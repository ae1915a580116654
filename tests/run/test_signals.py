"""A signal reaches the script once, whoever sent it and to whomever."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace

COUNTING = """
    import os, signal, sys, time
    counts = []
    signal.signal(signal.SIGTERM, lambda *_: counts.append("TERM"))
    signal.signal(signal.SIGUSR1, lambda *_: counts.append("USR1"))
    print("ready", flush=True)
    begun = time.monotonic()
    while not counts and time.monotonic() - begun < 90: time.sleep(0.01)
    time.sleep(0.6)
    print(counts, flush=True)
"""


def _ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def _rest(process: subprocess.Popen[bytes]) -> bytes:
    return process.communicate(timeout=PATIENCE_S)[0]


def test_one_sent_to_holdfast_is_passed_on_once(workplace: Workplace) -> None:
    process = workplace.start(workplace.script(COUNTING))
    _ready(process)
    os.kill(process.pid, signal.SIGTERM)
    assert _rest(process) == b"['TERM']\n"


def test_one_sent_to_the_process_group_is_passed_on_once(workplace: Workplace) -> None:
    process = workplace.start(workplace.script(COUNTING), process_group=0)
    _ready(process)
    os.killpg(process.pid, signal.SIGTERM)
    assert _rest(process) == b"['TERM']\n"


def test_one_sent_to_every_process_as_schedulers_do_arrives_once(workplace: Workplace) -> None:
    process = workplace.start(workplace.script(COUNTING))
    _ready(process)
    watcher, script = workplace.watcher_of(process.pid), workplace.script_of(process.pid)
    os.kill(process.pid, signal.SIGSTOP)  # all at once, also where the next of the three kills has to wait its turn
    for pid in (process.pid, watcher.pid, script.pid):
        os.kill(pid, signal.SIGUSR1)
    os.kill(process.pid, signal.SIGCONT)
    assert _rest(process) == b"['USR1']\n"


def test_timeout_ends_the_job_and_the_reason_names_it(workplace: Workplace) -> None:
    """Its time is made to be up as soon as the script runs: how long that takes is the machine's affair."""
    command = workplace.script("import time; print('ready', flush=True); time.sleep(200)")
    process = workplace.start(command, before=("timeout", "150"))
    _ready(process)
    os.kill(process.pid, signal.SIGALRM)  # what its own timer sends it
    assert process.wait(PATIENCE_S) == 124
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "terminated")
    assert any("from timeout" in item["text"] for item in answer["cause"]["evidence"])


def test_an_ignored_hangup_stays_ignored(workplace: Workplace) -> None:
    command = workplace.script("import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)")
    done = subprocess.run(
        ["nohup", *HOLDFAST, "run", *command], cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout == b"True\n"
