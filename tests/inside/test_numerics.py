"""What the frameworks' numerics share, by plain numbers."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace
from typing import Any

from holdfast.inside.numerics import events
from holdfast.inside.numerics.bound import Bound
from holdfast.inside.numerics.labels import classes
from holdfast.inside.numerics.plain_numbers import History, kind_of, told, words
from holdfast.inside.numerics.schedule import Schedule
from holdfast.inside.telemetry import Recorder
from holdfast.inside.tensorflow.numerics.eager_samples import EagerSamples


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _looked_at(steps: int, step_s: float, cost_s: float) -> list[tuple[int, float]]:
    clock = Clock()
    schedule = Schedule(clock=clock)
    found = []
    for step in range(1, steps + 1):
        clock.now += step_s
        if schedule.is_due(step):
            clock.now += cost_s
            found.append((step, clock.now))
            schedule.looked(step, cost_s)
    return found


def test_first_steps_are_looked_at_by_number_and_later_ones_by_the_clock() -> None:
    looks = _looked_at(5000, step_s=0.01, cost_s=1e-4)
    assert [step for step, _ in looks][:15] == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987]
    gaps = [later - earlier for (_, earlier), (_, later) in itertools.pairwise(looks[15:])]
    assert len(gaps) > 50 and all(0.5 <= gap < 0.53 for gap in gaps)


def test_after_a_jump_of_the_rate_steps_are_looked_at_like_the_first_ones_a_few_times() -> None:
    schedule, clock = Schedule(clock=lambda: 0.0), []
    for step in range(1, 4000):
        if schedule.is_due(step):
            clock.append(step)
            schedule.looked(step, 1e-4)
        if step in (30, 400, 1500, 2500, 3500):
            schedule.begin_again(step)
    assert clock[:15] == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 401, 402], "30 is still dense"
    assert [step in clock for step in (1501, 1513, 2501, 2513, 3501)] == [True, True, True, True, False]


def test_looks_that_cost_much_are_spaced_to_three_thousandths_of_the_time() -> None:
    looks = _looked_at(20_000, step_s=0.01, cost_s=0.01)
    assert [step for step, _ in looks][:7] == [1, 2, 3, 5, 8, 13, 21]
    late = [at for _, at in looks[65:]]  # once the allowance is used up
    assert len(late) > 20 and 0.01 * (len(late) - 1) / (late[-1] - late[0]) <= 0.0031


def test_a_long_run_is_looked_at_less_often() -> None:
    looks = _looked_at(36_000, step_s=1.0, cost_s=1e-4)
    last = [at for _, at in looks[-3:]]
    assert 150 < last[-1] - last[-2] < 190 and 500 < len(looks) < 1500


def test_dear_looks_are_few() -> None:
    assert [step for step, _ in _looked_at(60, step_s=1.0, cost_s=0.2)] == [1, 2, 3, 5]


def test_numbers_are_told_as_json_has_them() -> None:
    assert [told(value) for value in (math.nan, math.inf, -math.inf, 1 / 3, 7, None, "x")] == [
        "NaN", "Inf", "-Inf", 0.333333, 7, None, "x",
    ]  # fmt: skip
    assert [words(value) for value in (0.0, 812.5, 5.1e38, -math.inf)] == ["0.0", "812.5", "5.1e+38", "-Inf"]
    assert [kind_of(1, 5, 0), kind_of(0, 2, 1), kind_of(0, 0, 1), kind_of(0, 0, 0)] == ["NaN", "Inf", "-Inf", None]


def test_a_history_keeps_the_latest_and_knows_what_is_usual() -> None:
    history = History(kept=3)
    for step, value in enumerate([9.0, 1.0, math.nan, 2.0], start=1):
        history.add(step, value)
    assert history.told() == [[2, 1.0], [3, "NaN"], [4, 2.0]] and history.usual() == 2.0


def test_help_is_bounded_within_so_many_steps() -> None:
    bound = Bound(times=2, within_steps=10)
    assert [bound.allows(step) for step in (1, 2, 3, 11, 12, 13)] == [True, True, False, True, True, False]
    assert bound.count == 4


def test_labels_are_counted() -> None:
    assert classes([1, 1, 0, 1]) == [2, 0.75, 4, 1] and classes([]) == []


def test_the_place_of_an_incident_does_not_stand_where_the_events_time_does() -> None:
    told_events: list[dict[str, Any]] = []

    class Ring:
        def text(self, kind: str, at: float, **data: Any) -> None:
            told_events.append(json.loads(json.dumps({"kind": kind, "at": at, **data})))

    events.tell_non_finite(Recorder(Ring()), {"step": 3, "at": {"op": "log"}})  # type: ignore[arg-type]
    assert told_events[0]["place"] == {"op": "log"} and isinstance(told_events[0]["at"], float)


def test_of_many_layers_the_first_and_last_are_told() -> None:
    assert events.ends(list(range(30))) == [*range(12), *range(18, 30)] and events.ends([1, 2]) == [1, 2]


def test_samples_of_an_eager_loop_that_fail_once_are_taken_no_more() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    recorder: Any = SimpleNamespace(event=lambda kind, **data: told.append((kind, data)), steps=7)
    samples = EagerSamples(recorder, tf=None)
    samples.give_up(AttributeError("no attribute '_value'"))
    assert told == [("numerics.not_sampled", {"reason": "AttributeError: no attribute '_value'"})]
    samples.applied(object(), [object()], None, 0.5)  # asks nothing of what it is given any more
    assert len(told) == 1
