"""Each detector is called alone: what one does costs its own findings, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.detectors import WHILE_RUNNING, runner
from holdfast.detectors.runner import Detector, DetectorRunner, HeldUp, held_up
from holdfast.recorded_events import DetectorOff
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

SEEN = Finding("disk-full", 0.6, (Evidence("full", "telemetry"),))


def _well(_: Window) -> Finding:
    return SEEN


def _raises(_: Window) -> Finding:
    raise KeyError("held_bytes")


def _off(detectors: DetectorRunner) -> list[DetectorOff]:
    return [DetectorOff.of(event) for event in detectors.switched_off(1.0)]


class Sleepy:
    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)
        self.calls = 0

    def __call__(self, _: Window) -> list[Finding]:
        self.calls += 1
        time.sleep(self.seconds.pop(0) if self.seconds else 0.0)
        return [SEEN]


@pytest.fixture
def hanging() -> Iterator[Detector]:
    released = threading.Event()
    yield Detector("hanging", lambda _: (released.wait(60), None)[1])
    released.set()


def test_one_that_raises_is_switched_off_with_its_last_frames_and_the_others_are_heard() -> None:
    both = DetectorRunner([Detector("bad", _raises), Detector("good", _well)])
    assert both.find(Window()) == [SEEN]
    (off,) = _off(both)
    assert (off.detector, off.reason) == ("bad", "KeyError: 'held_bytes'")
    assert "test_runner.py" in off.frames[-1] and "in _raises" in off.frames[-1]
    assert both.find(Window()) == [SEEN] and _off(both) == []


def test_one_that_raises_once_is_not_called_again() -> None:
    calls = []

    def once(_: Window) -> None:
        calls.append(1)
        raise ValueError("once")

    detectors = DetectorRunner([Detector("once", once)])
    for _ in range(3):
        assert detectors.find(Window()) == []
    assert len(calls) == 1 and len(_off(detectors)) == 1


def test_a_slow_one_delays_a_turn_by_no_more_than_it_may_take_and_is_off_after_three() -> None:
    slow = Sleepy(*[0.5] * 9)
    detectors = DetectorRunner([Detector("slow", slow), Detector("good", _well)], slow_s=0.05)
    while not (off := _off(detectors)):
        assert detectors.find(Window()) == [SEEN], "the others are heard in every turn"
        time.sleep(0.1)
    assert slow.calls == runner.SLOW_CALLS
    assert off[0].detector == "slow" and off[0].reason.startswith("took 0.5 s")


def test_the_others_do_not_wait_for_a_call_that_lasts(hanging: Detector) -> None:
    """By the order of things, not by a clock: the rest answers while that call is still going on."""
    detectors = DetectorRunner([hanging, Detector("good", _well)], slow_s=0.01, hung_s=1e9)
    assert detectors.find(Window()) == [SEEN]
    assert detectors.find(Window()) == [SEEN]
    assert _off(detectors) == []


def test_a_call_that_hangs_is_enough(hanging: Detector) -> None:
    detectors = DetectorRunner([hanging], slow_s=0.01, hung_s=0.2)
    while not (off := _off(detectors)):
        detectors.find(Window())
        time.sleep(0.02)
    assert off[0].reason.startswith("did not answer for")


def test_an_endless_loop_does_not_keep_its_processor() -> None:
    ended = threading.Event()

    def endless(_: Window) -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    detectors = DetectorRunner([Detector("endless", endless)], slow_s=0.01, hung_s=0.1)
    while not _off(detectors):
        detectors.find(Window())
        time.sleep(0.02)
    assert ended.wait(60)
    assert detectors.find(Window()) == [] and _off(detectors) == []


def test_one_that_reads_what_it_has_not_declared_is_switched_off_with_the_reason() -> None:
    @reads(events=["script.exit"])
    def greedy(window: Window) -> None:
        window.value("host.memory_available_bytes")

    detectors = DetectorRunner([Detector("greedy", greedy, greedy.reads), Detector("good", _well)])
    assert detectors.find(Window()) == [SEEN]
    (off,) = _off(detectors)
    assert (off.detector, off.reason) == ("greedy", "UndeclaredRead: signal host.memory_available_bytes")


def test_two_slow_calls_long_ago_are_forgiven() -> None:
    slow = Sleepy(0.5, 0.5)  # with a limit shorter than the usual one, a busy machine makes a third slow call
    detectors = DetectorRunner([Detector("slow", slow)])
    for _ in range(3 * runner.FORGIVEN_AFTER):
        detectors.find(Window())
        time.sleep(0.005)
    slow.seconds = [0.5]
    for _ in range(40):
        detectors.find(Window())
        time.sleep(0.02)
    assert slow.seconds == [] and _off(detectors) == []


@pytest.mark.parametrize(
    ("before", "after", "charged"),
    [
        (HeldUp(1.0, 5), HeldUp(1.0, 5), 2.0),
        (HeldUp(1.0, 5), HeldUp(2.9, 5), 0.1),
        (HeldUp(1.0, 5), HeldUp(1.0, 6), 2.0 * runner.HUNG_S / runner.HUNG_WHILE_PAGING_S),
    ],
    ids=["its own", "others had the processors", "pages were read in"],
)
def test_what_the_machine_held_up_is_not_charged(
    before: HeldUp, after: HeldUp, charged: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings, here = iter([before, after]), threading.get_native_id()
    of_another = HeldUp(0.0, 0)  # a worker that an earlier test left behind in its call asks as well
    monkeypatch.setattr(runner, "held_up", lambda thread_id: next(readings) if thread_id == here else of_another)
    turn = runner.Turn(Window(), [])
    turn.carry_out()
    assert turn._charged(2.0) == pytest.approx(charged)


def test_the_kernel_says_what_a_thread_waited_for() -> None:
    assert held_up(threading.get_native_id()).run_queue_s > 0
    assert held_up(0) == HeldUp(0.0, 0)


def test_without_a_thread_they_are_called_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    detectors = DetectorRunner([Detector("bad", _raises), Detector("good", _well)])
    assert detectors.find(Window()) == [SEEN]
    assert [off.detector for off in _off(detectors)] == ["bad"]


def test_memory_is_looked_at_first() -> None:
    names = [detector.name for detector in WHILE_RUNNING]
    assert names[:2] == ["filling: memory", "filling: memory of this container"]
    assert len(set(names)) == len(names)
