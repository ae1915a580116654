"""How long nothing has moved, what counts as moving, and when stacks are asked for."""

from __future__ import annotations

import pytest

from holdfast.supervisor.silence import Limits, Silence
from holdfast.supervisor.source_lines import Source
from holdfast.vocabulary import Sample


def silence(seconds: float, *, step_s: float | None = None, limits: Limits | None = None) -> Silence:
    found = Silence(limits or Limits())
    found.turn(0.0, [Sample("train.step_s", step_s, 0.0)] if step_s else [], told=True, phase="train")
    for second in range(1, int(seconds) + 1):
        found.turn(float(second), [], told=False, phase="train")
    return found


def test_silence_is_time_without_a_word_or_a_byte() -> None:
    assert silence(20).silent_s == 20.0
    told = silence(20)
    told.turn(21.0, [], told=True, phase="train")
    assert told.silent_s == 0.0


@pytest.mark.parametrize(("moved", "silent_s"), [(200 << 10, 0.0), (1 << 10, 22.0)])
def test_polling_moves_some_bytes_and_work_moves_many(moved: int, silent_s: float) -> None:
    found = silence(20)
    for second, total in ((21.0, 1000.0), (22.0, 1000.0 + moved)):
        found.turn(second, [Sample("job.moved_bytes", total, second)], told=False, phase="train")
    assert found.silent_s == silent_s


def test_answering_for_stacks_is_no_sign_of_life() -> None:
    found = silence(20)
    found.turn(21.0, [Sample("job.moved_bytes", 0.0, 21.0)], told=False, phase="train")
    found.asked(21.0)
    found.turn(22.0, [Sample("job.moved_bytes", 1e6, 22.0)], told=False, phase="train")
    assert found.silent_s == 22.0


def test_a_stopped_job_and_a_machine_that_slept_are_not_silent() -> None:
    slept = silence(5)
    slept.turn(3600.0, [], told=False, phase="train")
    assert slept.silent_s == 5 + Limits().longest_turn_s
    stopped = silence(30)
    both = [Sample("job.stopped_count", 2.0, 31.0), Sample("job.processes_count", 2.0, 31.0)]
    stopped.turn(31.0, both, told=False, phase="train")
    assert stopped.silent_s == 0.0


def test_how_long_depends_on_what_the_job_has_shown() -> None:
    assert (silence(1).soon_s, silence(1, step_s=4.0).soon_s) == (10.0, 40.0)
    paused = silence(60)
    assert paused.late_s == 90.0
    paused.turn(61.0, [], told=True, phase="train")
    assert paused.late_s == 600.0


def test_stacks_are_asked_for_in_pairs_and_again_later() -> None:
    found = silence(9)
    assert not found.wanted()
    asked = []
    for second in range(10, 200):
        found.turn(float(second), [], told=False, phase="train")
        if found.wanted():
            found.asked(float(second))
            asked.append(second)
    assert asked[:10] == [10, 13, 20, 23, 30, 33, 60, 63, 90, 93]
    assert len(asked) == 12


# -- what the source says of a place


LOOPS = {
    "while True:\n    work()": "while True:",
    "while not done:\n    done = look()": "while not done:",
    "for one in itertools.count():\n    work()": "for one in itertools.count():",
    "while time.monotonic() < ends:\n    work()": "",
    "while True:\n    if time.time() > ends: break\n    work()": "",
    "while elapsed < 60:\n    work()": "",
    "while step < 100:\n    optimizer.step()": "",
    "for row in rows:\n    work()": "",
    "work()\nwork()": "",
}


@pytest.mark.parametrize("text", LOOPS)
def test_a_loop_that_nothing_is_sure_to_end(text: str) -> None:
    assert Source(text).endless_loop(2) == LOOPS[text]


CONDITIONS = {
    "while size > self.least:\n    work()": {"size", "self.least"},
    "while len(waiting) and not done:\n    work()": {"waiting", "done"},
    "while evaluate(weights) > start:\n    work()": set(),
    "while True:\n    work()": set(),
    "while other.left:\n    work()": set(),
    "for one in itertools.count(first):\n    work()": set(),
    "while True:\n    left -= work()\n    if left < 0: break": {"left"},
    "while True:\n    new = improved(old)\n    if abs(new - old) < 1e-6: break\n    old = new": {"new", "old"},
    "while True:\n    self.rows.append(work())\n    if len(self.rows) > wanted: return": {"self.rows"},
    "while True:\n    row = draw()\n    if labels[row] == wanted: break": set(),
    "while True:\n    turns += 1\n    if labels[row] == wanted: break": set(),
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_what_the_condition_of_a_loop_looks_at(text: str) -> None:
    assert Source(text).condition_names(2) == CONDITIONS[text]


def test_a_generator_waits_for_whoever_takes_from_it_and_a_function_begins_anew() -> None:
    assert Source("def rows():\n    while True:\n        yield read()\n").endless_loop(3) == ""
    inner = "while True:\n    def f():\n        work()\n    f()\n"
    assert (Source(inner).endless_loop(3), Source(inner).endless_loop(4)) == ("", "while True:")


def test_the_locks_around_a_line_are_those_that_are_held_there() -> None:
    text = "with a:\n    with self.b, open(x) as f:\n        with c:\n            work()\n"
    source = Source(text)
    assert [source.locks_held(number) for number in (1, 3, 4)] == [(), ("a", "self.b"), ("a", "self.b", "c")]
    assert Source("not python at all (").endless_loop(1) == ""
