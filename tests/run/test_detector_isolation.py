"""A detector that raises or sleeps in a real run: the script, the record and the other detectors do not notice."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import pytest

from holdfast.journal import Journal
from holdfast.recorded_events import DetectorOff
from holdfast.vocabulary import Event
from lab.case import Limits
from tests.fake_training import fake_training
from tests.staging import staged
from tests.workplace import Workplace

MB = 1 << 20

# Holdfast with one more detector, before all others.
PATCHED = """
    import sys, time
    from holdfast import cli, detectors
    from holdfast.detectors.runner import Detector
    from holdfast.vocabulary import Evidence, Finding

    calls = 0

    def bad(window):
        global calls
        calls += 1
        {body}

    for name in {lists}:
        setattr(detectors, name, (Detector("bad", bad), *getattr(detectors, name)))
    sys.exit(cli.main())
"""
BODIES = {
    "raises every time": "raise KeyError('held_bytes')",
    "raises once": "if calls == 1: raise KeyError('held_bytes')",
    "sleeps 2 s": "time.sleep(2)",
}
SCRIPT = """
    import sys, time
    for i in range(int(sys.argv[1])):
        print("step", i, flush=True); time.sleep(0.1)
    print("done", file=sys.stderr)
    sys.exit(7)
"""
FILLS_MEMORY = """
    import time
    kept = []
    while True:
        kept.append(bytearray(6 << 20)); time.sleep(0.1)
"""


def _holdfast(workplace: Workplace, body: str, *lists: str) -> list[str]:
    source = textwrap.dedent(PATCHED).format(body=body, lists=lists)
    path = workplace.path / "patched_holdfast.py"
    path.write_text(source)
    return [sys.executable, str(path)]


def _ask(holdfast: list[str], workplace: Workplace, *words: str) -> str:
    done = subprocess.run([*holdfast, *words], cwd=workplace.path, capture_output=True, timeout=100, check=False)
    assert done.returncode in (0, 3), done.stderr.decode()
    assert done.stderr == b""
    return done.stdout.decode()


def _journal(workplace: Workplace) -> Journal:
    (run,) = (workplace.path / ".holdfast" / "runs").iterdir()
    return Journal(run / "journal")


def _off(workplace: Workplace) -> list[Event]:
    return _journal(workplace).events(DetectorOff.KIND)


SLOW = pytest.mark.slow  # that one that sleeps is left out is seen below, too


@pytest.mark.parametrize(
    "body", [pytest.param(body, id=name, marks=SLOW if "sleep" in body else ()) for name, body in BODIES.items()]
)
def test_the_run_its_output_and_its_record_are_the_same(workplace: Workplace, body: str) -> None:
    seconds = 14 if "sleep" in body else 4  # three looks of two seconds, on a busy machine
    command = [*workplace.script(SCRIPT), str(10 * seconds)]
    bare = subprocess.run(command, cwd=workplace.path, capture_output=True, timeout=100, check=False)
    holdfast = _holdfast(workplace, body, "WHILE_RUNNING", "FOR_DIAGNOSIS", "ONCE_AFTER_EXIT")
    watched = subprocess.run(
        [*holdfast, "run", "--", *command], cwd=workplace.path, capture_output=True, timeout=200, check=False
    )
    assert (watched.returncode, watched.stdout, watched.stderr) == (7, bare.stdout, bare.stderr)
    off = _off(workplace)
    assert [event.data["detector"] for event in off] == ["bad"] * len(off) and off
    expected = r"took 2\.\d s for a look, 3 times" if "sleep" in body else "KeyError: 'held_bytes'"
    assert re.fullmatch(expected, off[0].data["reason"])
    journal = _journal(workplace)
    looks = [sample.at for sample in journal.samples(["host.memory_available_bytes"])]
    assert looks[-1] - looks[0] > seconds - 2 and len(looks) > seconds - 2, "the watcher looked on until the end"
    assert journal.damage == [] and journal.events("script.exit")[0].data["code"] == 7
    told = _ask([sys.executable, "-m", "holdfast"], workplace, "why", "--verbose")
    assert "a check of Holdfast's failed and is switched off: bad:" in re.sub(r"\s+", " ", told)
    assert ("patched_holdfast.py" in told) is ("raise" in body), "the frames of what raised"


@pytest.mark.root
@pytest.mark.alone
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_memory_is_announced_in_time_all_the_same(workplace: Workplace, body: str) -> None:
    holdfast = _holdfast(workplace, body, "WHILE_RUNNING")
    command = [*holdfast, "run", "--policy", "advise", "--", *workplace.script(FILLS_MEMORY)]
    with staged(Limits(memory=400 * MB), workplace.path.name) as stage:
        done = subprocess.run(stage.wrap(command), cwd=workplace.path, capture_output=True, timeout=200, check=False)
    assert done.returncode == 137
    assert re.search(
        rb"memory of this container: \d+ MiB of 400 MiB in use, growing .*full in about \d+ s", done.stderr
    )
    if "sleep" not in body:  # one that sleeps may not have had its three turns
        assert _off(workplace)


def test_why_answers_and_names_the_detector_that_failed_in_it(workplace: Workplace) -> None:
    workplace.run(workplace.script("import os; os.kill(os.getpid(), 11)"), "--policy", "advise")
    holdfast = _holdfast(workplace, "raise ValueError('ours')", "FOR_DIAGNOSIS")
    told = re.sub(r"\s+", " ", _ask(holdfast, workplace, "why", "--verbose"))
    assert "native-crash" in told.partition("Evidence")[0]
    assert "a check of Holdfast's failed and is switched off: bad: ValueError: ours" in told
    assert "patched_holdfast.py" in told
    answer = json.loads(_ask(holdfast, workplace, "why", "--json"))
    assert answer["cause"]["id"] == "native-crash" and "bad: ValueError: ours" in answer["not_working"][0]


def test_a_bug_of_the_diagnosis_is_not_blamed_on_the_record(workplace: Workplace) -> None:
    """A detector finds what the catalogue does not know, and the diagnosis raises: the record is as it was."""
    workplace.run(workplace.script("import os; os.kill(os.getpid(), 11)"), "--policy", "advise")
    holdfast = _holdfast(workplace, "return Finding('no-such-cause', 0.9, (Evidence('x', 'exit'),))", "FOR_DIAGNOSIS")
    told = re.sub(r"\s+", " ", _ask(holdfast, workplace, "why"))
    assert told.startswith("Holdfast cannot say: its own diagnosis failed")
    assert "diagnosis: KeyError: 'no-such-cause'" in told and "record" not in told


def test_a_restart_is_decided_although_a_detector_fails(workplace: Workplace) -> None:
    """Killed once: judged, and started again, by the detectors that are left."""
    command = fake_training(workplace, "if ATTEMPT == 1 and step == 25: die()")
    holdfast = _holdfast(workplace, "raise ValueError('ours')", "FOR_DIAGNOSIS")
    done = subprocess.run(
        [*holdfast, "run", "--", *command], cwd=workplace.path, capture_output=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"killed by somebody at step 25; starting again from step 20" in done.stderr
    assert [event.data["reason"] for event in _off(workplace)] == ["ValueError: ours"]


TICK_RAISES = """
    import sys
    from holdfast import cli
    from holdfast.supervisor import tick

    ticks, tick_as_it_is = 0, tick.Watch.tick

    def failing(self, now):
        global ticks
        ticks += 1
        if ticks == 3:
            raise KeyError("a bug")
        return tick_as_it_is(self, now)

    tick.Watch.tick = failing
    sys.exit(cli.main())
"""


def test_a_bug_in_the_tick_itself_costs_neither_the_run_nor_its_record(workplace: Workplace) -> None:
    """First the watcher fails, then the relay that watches in its place: each has three turns and then the bug."""
    (workplace.path / "patched_holdfast.py").write_text(textwrap.dedent(TICK_RAISES))
    holdfast = [sys.executable, str(workplace.path / "patched_holdfast.py")]
    command = [*workplace.script(SCRIPT), "80"]
    done = subprocess.run(
        [*holdfast, "run", "--", *command], cwd=workplace.path, capture_output=True, timeout=200, check=False
    )
    assert done.returncode == 7 and done.stdout.endswith(b"step 79\n")
    journal = _journal(workplace)
    (lost,) = journal.events("watcher.lost")
    (failed,) = journal.events("watcher.failed")
    assert "KeyError: 'a bug'" in lost.data["reason"] and "KeyError: 'a bug'" in failed.data["reason"]
    told = _ask([sys.executable, "-m", "holdfast"], workplace, "why")
    assert "Holdfast's watcher failed, which is a bug of its own (KeyError: 'a bug'); the relay watched on." in re.sub(
        r"\s+", " ", told
    )
