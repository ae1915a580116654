"""A job that stands still, for real: noticed, explained, ended where that is certain, and finished by another attempt."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.fake_training import fake_training
from tests.workplace import Workplace, wait_for

pytestmark = pytest.mark.timeout(150)
# As the command line does, with limits that a test can wait for.
START = """
import sys
from pathlib import Path
from holdfast.cli.run_store import new_run
from holdfast.supervisor.run import supervise
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.silence import Limits
from holdfast.vocabulary import Policy

if __name__ == "__main__":
    limits = Limits(soon_s=2.0, late_s=4.0, apart_s=1.1, typical_steps=1)
    spec = RunSpec(tuple(sys.argv[2:]), new_run(None, "")[0], Path.cwd(), Policy(sys.argv[1]), silence=limits, checkpoint="auto")
    sys.exit(supervise(spec))
"""
TWO_LOCKS = """
if step == 35 and ATTEMPT == 1:
    import threading
    index, table = threading.Lock(), threading.Lock()
    def compact():
        with table:
            time.sleep(0.2)
            with index:  # the keys
                pass
    threading.Thread(target=compact, daemon=True).start()
    with index:
        time.sleep(0.4)
        with table:  # the rows
            pass
"""
LATE_LOCK = """
if step == 35:
    import threading
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(3.5, lock.release).start()
    with lock:
        pass
"""


def start(workplace: Workplace, policy: str, fault: str) -> subprocess.Popen[bytes]:
    (workplace.path / "start.py").write_text(START)
    command = [sys.executable, "start.py", policy, *fake_training(workplace, fault)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=workplace.path, **pipes)
    workplace.started.append(process)
    return process


def evidence(answer: dict[str, Any]) -> str:
    return "\n".join(item["text"] for item in answer["cause"]["evidence"])


def test_a_deadlock_is_ended_started_again_and_finished(workplace: Workplace) -> None:
    out, err = start(workplace, "protect", TWO_LOCKS).communicate(timeout=100)
    assert b"trained 60" in out
    assert b"attempt 2 from 30" in out
    assert b"deadlocked at step 35; starting again from step 30 (5 steps" in err
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "deadlock")
    assert "holds index and wants table while thread" in evidence(answer)
    assert "in fault: with table:  # the rows" in evidence(answer)
    assert "in compact: with index:  # the keys" in evidence(answer)
    stacks = sorted((workplace.path / ".holdfast" / "runs").glob("*/stacks/*.json"))
    assert len(stacks) >= 3


def test_advise_only_tells_and_whoever_ends_it_ended_it_for_that(workplace: Workplace) -> None:
    process = start(workplace, "advise", TWO_LOCKS)
    assert process.stderr is not None
    line = next(line for line in process.stderr if b"nothing has moved" in line)
    assert b"it is deadlocked at train.py:" in line
    stalled = wait_for(lambda: (said := workplace.why())["outcome"] == "stalled" and said)
    assert stalled["cause"]["id"] == "deadlock"
    time.sleep(2.0)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("failed", "deadlock")


def test_a_lock_that_somebody_releases_in_time_is_no_deadlock(workplace: Workplace) -> None:
    out, err = start(workplace, "protect", LATE_LOCK).communicate(timeout=100)
    assert b"trained 60" in out
    assert b"nothing has moved" not in err
    assert workplace.why()["noticed"] == []


SLEEPS = """
if step >= 35:
    time.sleep(7 if step == 35 else 0.1)
"""


def test_what_goes_on_after_all_is_said_to_go_on(workplace: Workplace) -> None:
    out, err = start(workplace, "protect", SLEEPS).communicate(timeout=100)
    assert b"trained 60" in out
    said = [line for line in err.decode().splitlines() if "moved" in line or "moves again" in line]
    assert ["it waits again and again at train.py" in said[0], "it moves again, after" in said[1]] == [True, True]
    answer = workplace.why()
    assert (answer["outcome"], answer["noticed"]) == ("completed", [])
