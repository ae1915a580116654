"""What does not work is said once on standard error, and stands in the verdict."""

from __future__ import annotations

from tests.fake_training import fake_training
from tests.workplace import Workplace

FAILS = "_recorder().event('checkpoint.failed', reason='OSError: [Errno 28] No space left on device')"
HOOK = "_recorder().event('inside.failed', place='Fit.began', reason='KeyError: 1')"
IN_EVERY_STEP = f"{FAILS}\n{HOOK}"


def test_checkpoints_that_fail_in_every_step_are_one_line(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, IN_EVERY_STEP))
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 2, lines
    assert lines[0].startswith(
        "holdfast: checkpoints are not working here: OSError: [Errno 28] No space left on device"
    )
    assert lines[1].startswith("holdfast: a part of Holdfast failed in the training process: Fit.began: KeyError: 1")
    text = workplace.why_text()
    assert "Not working here" in text and text.count("checkpoints are not working here") == 1
    decisions = [action["decision"] for action in workplace.why()["actions"]]
    assert len(decisions) == 2 and decisions[0].startswith("checkpoints are not working here")


def test_after_a_restart_it_is_not_said_again(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace, f"{FAILS}\nif ATTEMPT == 1 and step == 25: die()"))
    assert done.returncode == 0
    assert done.stderr.count(b"checkpoints are not working here") == 1


def test_a_run_in_which_everything_works_says_nothing(workplace: Workplace) -> None:
    done = workplace.run(fake_training(workplace))
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Not working here" not in workplace.why_text() and workplace.why()["actions"] == []
