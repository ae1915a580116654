"""The right rung each time, in a memory cgroup of its own; the neighbour in it lives and goes on."""

from __future__ import annotations

import pytest

from tests.guard.arena import run_in_arena
from tests.workplace import Workplace

pytestmark = pytest.mark.root

FULL_SPEED = """
    kept = []
    while True:
        kept.append(bytearray(b"x") * (8 << 20))
"""

# Trains by hand, answers as the part inside does once checkpoints are there, and leaks.
LEAKS_WHILE_TRAINING = """
    import sys, time
    import holdfast
    holdfast.step()
    recorder = sys.modules["holdfast_inside.start"].recorder()
    def save(command):
        open("saved", "a").write(f"{recorder.steps}\\n")
        return "saved"
    recorder.on_command("checkpoint", save)
    kept = []
    while True:
        kept.append(bytearray(b"x") * (%d << 20)); time.sleep(0.05); holdfast.step()
"""


def test_an_allocator_at_full_speed_is_held_and_stopped_before_the_kernel_kills(workplace: Workplace) -> None:
    result = run_in_arena(workplace, FULL_SPEED, memory=700, neighbour_mib=60)
    assert result.code == 137
    assert result.rungs[-2:] == ["held", "stopped"], result.rungs
    assert result.neighbour["lived"]
    assert not [event for event in result.of("kernel.line") if "oom-kill" in str(event.data.get("text"))]
    assert "holdfast: stopped the job before memory ran out: memory of this container" in result.said
    assert workplace.why()["cause"]["id"] == "container-memory-limit"


def test_a_leak_in_training_is_warned_of_relieved_checkpointed_and_then_stopped(workplace: Workplace) -> None:
    result = run_in_arena(workplace, LEAKS_WHILE_TRAINING % 1, memory=500, neighbour_mib=60)
    rungs = result.rungs
    assert result.code == 137
    assert rungs[-1] == "stopped" and "warn" in rungs, rungs
    assert rungs.index("relieve") < rungs.index("checkpoint") < rungs.index("stopped"), rungs
    assert (workplace.path / "saved").exists()
    stopped = result.of("guard.stopped")[-1].data
    assert stopped["checkpoint_saved_s_ago"] is not None and stopped["checkpoint_saved_s_ago"] < 10
    assert result.neighbour["lived"]


def test_advise_warns_and_does_nothing_else(workplace: Workplace) -> None:
    result = run_in_arena(workplace, LEAKS_WHILE_TRAINING % 6, "--policy", "advise", memory=300)
    assert result.code == 137
    assert set(result.rungs) <= {"warn"}


def test_observe_has_no_guard(workplace: Workplace) -> None:
    result = run_in_arena(workplace, FULL_SPEED, "--policy", "observe", memory=300)
    assert result.code == 137
    assert result.rungs == []
