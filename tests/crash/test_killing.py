"""Whichever of the three processes is killed, the record reads and the ending is right."""

from __future__ import annotations

import pytest

from tests.crash.killing import attempt, attempt_with_restart


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_kill_at_a_random_instant_leaves_the_right_ending(seed: int) -> None:
    result = attempt(seed)
    assert not result.problem, result


@pytest.mark.parametrize("seed", range(2000, 2004))
def test_so_does_one_while_the_script_is_started_again(seed: int) -> None:
    result = attempt_with_restart(seed)
    assert not result.problem, result
