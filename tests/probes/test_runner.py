from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.probes import Missing, Reading, Scope, listing
from holdfast.probes.listing import PROBES
from holdfast.probes.runner import ProbeRunner
from holdfast.vocabulary import Event, Sample

from .machine import FakeMachine, events, reasons, samples

PATIENCE_S = 30.0
HANGS_S = 0.5  # who has not answered by then hangs
SCOPE = Scope(os.getpid(), os.getppid(), (Path("/"),))


class Good:
    name = "good"
    every_s = 0.0

    def __init__(self, scope: Scope) -> None:
        self.reads = 0
        self.closed = False

    def read(self, now: float) -> list[Reading]:
        self.reads += 1
        return [Sample("good.reads_count", self.reads, now)]

    def close(self) -> None:
        Closed.names.append(self.name)


class Closed:
    names: list[str] = []  # noqa: RUF012


class Slow(Good):
    """Blocks until the test lets it go."""

    name = "slow"
    signals = ("slow.reads_count",)
    gate = threading.Event()

    def read(self, now: float) -> list[Reading]:
        self.gate.wait(PATIENCE_S)
        return [Sample("slow.reads_count", 1, now), Event("slow.found", now)]


class SlowToBuild(Good):
    name = "slow_to_build"
    gate = threading.Event()

    def __init__(self, scope: Scope) -> None:
        self.gate.wait(PATIENCE_S)
        super().__init__(scope)


class Broken(Good):
    name = "broken"
    signals = ("broken.reads_count",)

    def read(self, now: float) -> list[Reading]:
        raise ValueError("no number")


class Absent(Good):
    name = "absent"

    def __init__(self, scope: Scope) -> None:
        raise Missing("not on this machine")


class Rare(Good):
    name = "rare"
    every_s = 10.0

    def read(self, now: float) -> list[Reading]:
        return [Sample("rare.reads_count", 1, now)]


class Farewell(Good):
    name = "farewell"

    def closing(self, now: float) -> list[Reading]:
        return [Event("farewell.last_look", now)]


@pytest.fixture(autouse=True)
def gates(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And a poll that waits for a thread which has to wait for a processor itself."""
    monkeypatch.setattr("holdfast.probes.runner.WAIT_S", PATIENCE_S)
    Slow.gate.clear()
    SlowToBuild.gate.clear()
    yield
    Slow.gate.set()
    SlowToBuild.gate.set()


def test_a_probe_that_hangs_stops_neither_the_watcher_nor_the_others() -> None:
    runner = ProbeRunner(SCOPE, [Slow, Good], deadline_s=HANGS_S)
    told: list[Reading] = []
    began = time.monotonic()
    for tick in range(6):
        told += runner.poll(float(tick))
    assert time.monotonic() - began < PATIENCE_S / 2, "one that hangs does so for all of it"
    assert (samples(told)["good.reads_count"] or 0) >= 4
    assert [event.data["probe"] for event in events(told, "probe.late")] == ["slow"]
    assert reasons(told)["slow.reads_count"].startswith("no answer for ")


def test_a_probe_that_hangs_while_it_is_built_stops_nobody() -> None:
    runner = ProbeRunner(SCOPE, [SlowToBuild, Good], deadline_s=HANGS_S)
    told = [*runner.poll(0.0), *runner.poll(1.0)]
    assert samples(told)["good.reads_count"]
    assert [event.data["probe"] for event in events(told, "probe.late")] == ["slow_to_build"]


def test_a_probe_that_comes_back_is_taken_up_again() -> None:
    runner = ProbeRunner(SCOPE, [Slow, Good], deadline_s=HANGS_S)
    told = [*runner.poll(0.0), *runner.poll(0.5)]
    Slow.gate.set()
    until = time.monotonic() + PATIENCE_S
    while not events(told, "probe.back") and time.monotonic() < until:
        time.sleep(0.02)
        told += runner.poll(1.0)
    told += runner.poll(2.0)
    assert len(events(told, "probe.back")) == 1
    assert events(told, "slow.found"), "what it found counts, also late"
    assert samples(told)["slow.reads_count"] == 1


def test_several_that_hang_leave_the_rest_alone() -> None:
    runner = ProbeRunner(SCOPE, [SlowToBuild, Slow, Good], deadline_s=HANGS_S)
    told = [reading for tick in range(4) for reading in runner.poll(float(tick))]
    assert {event.data["probe"] for event in events(told, "probe.late")} == {"slow", "slow_to_build"}
    assert samples(told)["good.reads_count"]


def test_a_probe_that_fails_says_so_once_and_its_signals_are_missing() -> None:
    runner = ProbeRunner(SCOPE, [Broken, Good], PATIENCE_S)
    told = [*runner.poll(0.0), *runner.poll(1.0)]
    assert [event.data for event in events(told, "probe.failed")] == [
        {"probe": "broken", "reason": "ValueError: no number"}
    ]
    assert reasons(told)["broken.reads_count"] == "ValueError: no number"
    assert samples(told)["good.reads_count"] == 2


def test_a_probe_that_cannot_exist_here_says_so_once() -> None:
    runner = ProbeRunner(SCOPE, [Absent, Good], PATIENCE_S)
    told = [*runner.poll(0.0), *runner.poll(1.0)]
    assert [event.data for event in events(told, "probe.missing")] == [
        {"probe": "absent", "reason": "not on this machine", "tell": False}
    ]


def test_a_rare_probe_is_read_when_it_is_due_or_everything_is_asked_for() -> None:
    runner = ProbeRunner(SCOPE, [Rare, Good], PATIENCE_S)
    assert "rare.reads_count" in samples(runner.poll(0.0))
    assert "rare.reads_count" not in samples(runner.poll(5.0))
    assert "rare.reads_count" in samples(runner.poll(6.0, everything=True))
    assert "rare.reads_count" in samples(runner.poll(16.0))


def test_the_closing_look_may_differ_and_is_protected() -> None:
    runner = ProbeRunner(SCOPE, [Slow, Farewell, Good], deadline_s=HANGS_S)
    began = time.monotonic()
    told = runner.closing(1.0)
    assert time.monotonic() - began < PATIENCE_S / 2
    assert events(told, "farewell.last_look")
    assert samples(told)["good.reads_count"] == 1
    assert events(told, "probe.late")


def test_closing_closes_the_probes() -> None:
    Closed.names.clear()
    runner = ProbeRunner(SCOPE, [Good, Rare], PATIENCE_S)
    runner.poll(0.0)
    runner.close()
    assert Closed.names == ["good", "rare"]


def test_without_a_thread_to_be_had_the_watcher_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = ProbeRunner(SCOPE, [Good], PATIENCE_S)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        told = [*runner.poll(0.0), *runner.poll(1.0)]
    assert [event.data["reason"] for event in events(told, "probe.failed")] == ["can't start new thread"]
    assert samples(runner.poll(2.0))["good.reads_count"] == 1


def test_on_a_machine_without_anything_every_probe_gives_reasons_and_none_fails(machine: FakeMachine) -> None:
    runner = ProbeRunner(machine.scope("/"), PROBES, PATIENCE_S)
    told = [*runner.poll(1.0), *runner.poll(2.0), *runner.closing(3.0)]
    runner.close()
    assert events(told, "probe.failed") == []
    gone = {event.data["probe"] for event in events(told, "probe.missing")}
    assert {"cgroup", "gpu", "kernel_log", "pressure", "processes", "shm", "vmstat", "cpu_heat"} <= gone
    assert all(event.data["reason"] for event in events(told, "probe.missing"))
    assert len(reasons(told)) > 5 and all(reasons(told).values())


def test_this_machine_is_read_without_a_failure() -> None:
    runner = ProbeRunner(SCOPE, PROBES, PATIENCE_S)
    told = [*runner.poll(1.0), *runner.poll(2.0), *runner.closing(3.0)]
    runner.close()
    assert events(told, "probe.failed") == []
    assert samples(told)["host.memory_available_bytes"]


def test_every_probe_has_a_name_of_its_own() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES)


def test_every_file_that_holds_a_probe_is_listed() -> None:
    folder = Path(listing.__file__).parent
    holding = {file.stem for file in folder.glob("*.py") if "    every_s = " in file.read_text()}
    assert holding == {place.partition(".")[0] for place in listing.LISTING}
