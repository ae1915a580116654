"""A script that hangs in native code dies of the signals it dies of without Holdfast; one that hears them ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.inside import stacks
from holdfast.inside.preemption import PATIENCE_S as HEARD_WITHIN_S
from holdfast.inside.preemption import WIRE
from holdfast.supervisor import tree_stacks, unanswered_signals
from holdfast.supervisor.unanswered_signals import UnansweredSignals, held_up
from holdfast.vocabulary import Event
from lab import frozen_files
from tests.workplace import PATIENCE_S, Workplace, wait_for

TRAINS = """
    import ctypes, os, signal, sys, time
    import holdfast

    def hang():
        # With the interpreter's lock held, in a call that no signal interrupts.
        lock = (ctypes.c_char * 64)()
        for _ in range(2):
            ctypes.PyDLL(None).pthread_mutex_lock(lock)

    {before}
    keep = holdfast.keep(best=0.5)
    for epoch, batch in keep.batches(range(100000), epochs=1):
        time.sleep(0.01)
        holdfast.step(loss=1.0)
        if batch == 5:
            print("here", flush=True)
            {then}
"""


def _started(workplace: Workplace, then: str, before: str = "pass") -> subprocess.Popen[bytes]:
    process = workplace.start(workplace.script(TRAINS.format(then=then, before=before)))
    assert process.stdout is not None and process.stdout.readline() == b"here\n"
    time.sleep(1.5)  # the watcher has read what the script told
    return process


@pytest.mark.parametrize("to", ["holdfast", "script"])
def test_a_script_that_hangs_in_native_code_dies_of_sigterm(workplace: Workplace, to: str) -> None:
    process = _started(workplace, "hang()")
    pid = process.pid if to == "holdfast" else workplace.script_of(process.pid).pid
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - began > HEARD_WITHIN_S - 1, "it was given its time"
    assert b"holdfast: the script does not react to SIGTERM" in err and b"starting again" not in err
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "terminated")
    assert any("does not react to SIGTERM" in action["decision"] for action in answer["actions"])


def test_one_that_hears_the_signal_saves_and_ends_by_itself(workplace: Workplace) -> None:
    process = _started(workplace, "pass")
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (128 + signal.SIGTERM, b""), "nobody said that it does not react"
    assert workplace.why()["resume"]


def test_one_with_a_handler_of_its_own_outlives_it_as_it_does_without_us(workplace: Workplace) -> None:
    process = _started(workplace, "hang()", before="signal.signal(signal.SIGTERM, lambda *_: None)")
    os.kill(process.pid, signal.SIGTERM)
    time.sleep(HEARD_WITHIN_S + 3)
    assert process.poll() is None


# -- what is overdue


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unanswered_signals, "PATIENCE_S", 0.05)
    monkeypatch.setattr(unanswered_signals, "UNTIL_THE_END_S", 0.2)


def _taking(*numbers: int, channel: Path | None = None) -> UnansweredSignals:
    waits = UnansweredSignals(os.getpid(), channel)
    waits.look([Event("signals.taken", 0.0, {"pid": os.getpid(), "signals": list(numbers)})])
    return waits


def _heard(number: int) -> Event:
    return Event("signal.heard", 0.0, {"pid": os.getpid(), "signal": number})


@pytest.mark.usefixtures("quick")
def test_heard_but_not_followed_by_the_end_is_overdue_later() -> None:
    waits = _taking(15)
    waits.given(15)
    waits.look([_heard(15)])
    time.sleep(0.08)
    assert waits.overdue() is None
    time.sleep(0.2)
    assert waits.overdue() == 15


@pytest.mark.usefixtures("quick")
def test_only_signals_whose_default_effect_was_taken_are_waited_for() -> None:
    waits = _taking(15)
    waits.given(10)
    waits.given(15)
    waits.look([Event("signals.taken", 0.0, {"pid": os.getpid(), "signals": []})])  # the script handles it itself now
    time.sleep(0.08)
    assert waits.overdue() is None


@pytest.mark.usefixtures("quick")
def test_a_stopped_process_is_not_overdue_until_it_goes_on() -> None:
    sleeper = subprocess.Popen(["sleep", "30"])
    try:
        waits = UnansweredSignals(sleeper.pid, None)
        waits.look([Event("signals.taken", 0.0, {"pid": sleeper.pid, "signals": [15]})])
        os.kill(sleeper.pid, signal.SIGSTOP)
        waits.given(15)
        time.sleep(0.2)
        assert waits.overdue() is None
        os.kill(sleeper.pid, signal.SIGCONT)
        time.sleep(0.1)
        assert waits.overdue() == 15
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.usefixtures("quick")
def test_what_the_c_handler_wrote_counts_as_given(tmp_path: Path) -> None:
    wire = tmp_path / f"{os.getpid()}{WIRE}"
    os.mkfifo(wire)
    fd = os.open(wire, os.O_RDWR | os.O_NONBLOCK)
    waits = _taking(15, channel=tmp_path)
    waits.look([])
    os.write(fd, bytes([17, 15]))
    waits.look([])
    time.sleep(0.08)
    assert waits.overdue() == 15
    waits.close()
    os.close(fd)
    assert not wire.exists()


def _masks(pending: int = 0, shared: int = 0, caught: int = 0) -> str:
    return (
        f"State:\tD\nSigPnd:\t{pending:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t0\nSigIgn:\t0\nSigCgt:\t{caught:016x}\n"
    )


def _bit(number: int) -> int:
    return 1 << (number - 1)


@pytest.mark.parametrize("ours", [stacks.STANDING, stacks.ASK])
def test_a_signal_that_waits_behind_ours_for_a_file_system_is_held_up_by_us(ours: int) -> None:
    term, caught = _bit(signal.SIGTERM), _bit(ours)
    assert held_up(_masks(_bit(ours), term, caught)) == [signal.SIGTERM]
    assert held_up(_masks(_bit(ours) | term, 0, caught)) == [signal.SIGTERM]
    assert held_up(_masks(0, term, caught)) == [], "ours does not wait: it is the kernel's affair"
    assert held_up(_masks(_bit(ours), term, caught | term)) == [], "the script handles it itself"
    assert held_up(_masks(_bit(ours), 0, caught)) == held_up("") == []


@pytest.mark.root
def test_a_script_that_waits_for_a_file_system_dies_of_sigterm_after_it_was_asked_for_stacks(
    workplace: Workplace,
) -> None:
    if not os.access(frozen_files.DEVICE, os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    with frozen_files.mounted(workplace.path / "shards") as server:
        assert any((workplace.path / "shards").iterdir())
        frozen_files.freeze(server)
        command = workplace.script("print('here', flush=True); open('shards/shard-001.npy').read()")
        process = workplace.start(command, "--policy", "advise")
        assert process.stdout is not None and process.stdout.readline() == b"here\n"
        script = workplace.script_of(process.pid).pid
        wait_for(lambda: Path(f"/proc/{script}/wchan").read_text() == "request_wait_answer")
        tree_stacks.take([script])
        os.kill(script, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
