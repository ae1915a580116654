"""Which places of a turn come after something in it has trained."""

from __future__ import annotations

import sys
from types import FrameType

from holdfast.inside.script_state.frames import stands, users
from holdfast.inside.script_state.loop_trails import Trails


class Recorded:
    """Counts updates as a framework's part does."""

    def __init__(self) -> None:
        self.trails, self.steps = Trails(), 0
        self.answers: list[str] = []

    def place(self) -> None:
        frame: FrameType = sys._getframe(1)
        found = users(frame)
        self.answers.append(self.trails.trained_before(found, stands(found), self.steps))
        self.trails.begins(frame, self.steps)

    def update(self) -> None:
        self.trails.updated(sys._getframe(1), self.steps)
        self.steps += 1


def epochs(seen: Recorded, number: int) -> None:
    for _epoch in range(number):
        seen.place()
        seen.steps += 1


def test_a_second_call_of_a_function_that_trains_comes_after_the_first() -> None:
    seen = Recorded()
    epochs(seen, 2)
    assert seen.answers == ["", ""]
    epochs(seen, 1)
    assert "epochs" not in seen.answers[2] and seen.answers[2]


def test_gradients_that_are_cleared_after_the_update_are_no_place() -> None:
    seen = Recorded()
    for _ in range(2):
        seen.update()
        seen.place()
    assert seen.answers[1] and seen.trails.are_late


def test_gradients_that_are_cleared_before_it_are() -> None:
    seen = Recorded()
    for _ in range(3):
        seen.place()
        seen.update()
    assert not any(seen.answers) and not seen.trails.are_late


def phases(seen: Recorded, number: int) -> None:
    for _epoch in range(number):
        for phase in ("train", "validate"):
            seen.place()
            seen.steps += phase == "train"


def test_a_function_that_ends_with_a_validation_at_the_same_place_has_trained_all_the_same() -> None:
    seen = Recorded()
    phases(seen, 2)
    assert not any(seen.answers)
    phases(seen, 1)
    assert all(seen.answers[4:])
