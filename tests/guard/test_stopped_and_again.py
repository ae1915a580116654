"""What the guard stopped goes on from the checkpoint the guard had asked for."""

from __future__ import annotations

import re

import pytest

from tests.fake_training import fake_training
from tests.guard.arena import run_in_arena
from tests.workplace import Workplace

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.alone]

# Saves only when it is asked to, and leaks in its first attempt.
SAVES_WHEN_ASKED = """
if step == 1:
    global EVERY, STEPS
    EVERY, STEPS = 10 ** 9, 400
    def save_now(command):
        save(_recorder().steps)
        return "saved"
    _recorder().on_command("checkpoint", save_now)
if ATTEMPT == 1:
    kept.append(bytearray(b"x") * (1 << 20))
    time.sleep(0.03)
"""


def test_it_resumes_and_a_leak_starts_afresh(workplace: Workplace) -> None:
    fake_training(workplace, SAVES_WHEN_ASKED, before="kept = []")
    source = (workplace.path / "train.py").read_text().replace("range(begin + 1, STEPS + 1)", "range(begin + 1, 1500)")
    result = run_in_arena(workplace, source, memory=400, timeout=120)
    assert result.code == 0, (result.said, result.printed)
    (stopped,) = result.of("guard.stopped")
    saved = [event for event in result.of("checkpoint.saved") if event.at <= stopped.at]
    assert saved and stopped.data["checkpoint_saved_s_ago"] < 10
    restarts = re.findall(r"attempt (\d) from (\d+) k (\w+)", result.printed)
    assert [attempt for attempt, _, _ in restarts] == ["1", "2"]
    assert int(restarts[1][1]) == saved[-1].data["step"], (restarts, saved)
    assert restarts[1][2] == "None"
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "host-memory-leak")
