"""What is told of a run that goes on or has finished, and how sure `why` is of anything, by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.views.web.report import log_report
from holdfast.views.why_text import as_text
from holdfast.vocabulary import Cause, Detail, Event, Evidence, Finding, Window
from tests.diagnosis.test_families import BESIDE, FAMILIES, GENERAL
from tests.diagnosis.test_logs import why
from tests.story import START, story
from tests.workplace import Workplace

LEAK = Finding(
    "host-memory-leak",
    0.9,
    (Evidence("memory grows by 3 MiB a step", "telemetry", START + 30),),
    {Detail.HOLDER: "losses in train.py"},
    headline="Memory leaks: 3 MiB a step",
)
STARVED = Finding("input-starvation", 0.95, (Evidence("80 % waiting", "telemetry", START + 30),))
SUSPICION = replace(LEAK, cause="gpu-memory-leak", confidence=0.4)


def _noticed(window: Window, *found: Finding) -> list[str]:
    return [cause.id for cause in diagnose(window, [], found).noticed]


def test_what_was_found_in_a_run_that_finished_is_noticed_worst_first_and_is_no_cause() -> None:
    answer = diagnose(story(0), [], [STARVED, LEAK, LEAK, SUSPICION])
    assert (answer.outcome, answer.cause) == ("completed", None)
    assert [(cause.id, cause.level) for cause in answer.noticed] == [
        ("host-memory-leak", "confident"),
        ("input-starvation", "confident"),
    ]
    assert answer.noticed[0].title == "Memory leaks: 3 MiB a step"
    assert "losses in train.py" in answer.noticed[0].remedies[0].how


def test_a_run_that_is_going_tells_what_was_found_so_far() -> None:
    alive = Event("aftermath", START + 60, {"script_alive": True})
    answer = diagnose(Window([Event("run.start", START, {"command": ["x"]}), alive]), [], [LEAK])
    assert answer.outcome == "running" and [cause.id for cause in answer.noticed] == ["host-memory-leak"]


def test_after_a_restart_what_the_last_attempt_went_on_with_is_told_beside_what_it_was_rescued_from() -> None:
    killed = diagnose(story(137, 9, host__oom_kill_count=[0.0, 0.0]), [])
    finished = diagnose(story(0), [], [LEAK])
    answer = over_attempts([killed, finished], restarts=1)
    assert answer.outcome == "recovered" and [cause.id for cause in answer.noticed] == ["host-memory-leak"]


def test_nothing_is_noticed_in_a_healthy_run_nor_in_one_that_failed() -> None:
    healthy = "".join(f"Epoch {i}/9 loss: {1 / i:.3f} accuracy: 0.8\n" for i in range(1, 10)).encode()
    warned = (
        b"Your input ran out of data; interrupting training.\nGPU will not be used.\n"  # as Keras 3.15 does in health
    )
    assert _noticed(story(0, None, {"stdout": healthy + warned})) == []
    assert _noticed(story(1, None, {"stderr": b"KeyError: 'x'\n"}), LEAK) == []


def test_what_was_told_then_is_for_people_and_not_read_back() -> None:
    """By a detector that has been mended since, say."""
    data = {"cause": "host-memory-leak", "confidence": 0.9, "key": "host-memory-leak", "evidence": ["it grows"]}
    told = Event("finding", START + 30, data)
    for window in (story(0, events=[told]), story(137, 9, events=[told])):
        answer = diagnose(window, find_endings(window))
        assert "host-memory-leak" not in {cause.id for cause in (answer.cause, *answer.also, *answer.noticed) if cause}


def test_a_loss_that_ran_away_in_a_run_that_finished_is_noticed() -> None:
    broken = "".join(f"step {i} loss: {10.0**i:.1f}\n" for i in range(8)) + "step 8 loss: nan\n" * 5
    assert _noticed(story(0, None, {"stdout": broken.encode()})) == ["learning-rate-too-high"]


def test_people_are_shown_what_was_noticed() -> None:
    window = story(0)
    answer = diagnose(window, [], [STARVED])
    text = as_text("r1", window, answer, [], colour=False)
    assert "Noticed" in text and "Training waits for its data · input-starvation, confident (95%)" in text
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert "Noticed: Training waits for its data" in log_report("r1", [], answer, [])


@pytest.mark.parametrize(("sure", "level"), [(0.97, "confident"), (0.8, "confident"), (0.79, "probable"), (0.5, "probable"), (0.49, "guess")])  # fmt: skip
def test_how_sure_has_a_name(sure: float, level: str) -> None:
    assert Cause("x", "X", sure, (), ()).level == level


@pytest.mark.parametrize("script", ["completed", "failed"])
def test_a_real_run_says_what_was_noticed_and_how_surely(workplace: Workplace, script: str) -> None:
    """Overflow on overflow down to nothing, and then it goes on, or fails of something else."""
    end = "" if script == "completed" else "raise KeyError('x')"
    source = f"""
    for i in range(12):
        print("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to", 2.0 ** -i, flush=True)
    {end}
    """
    workplace.run(workplace.script(source))
    answer = workplace.why()
    assert answer["outcome"] == script
    found = {cause["id"]: cause["level"] for cause in answer["noticed"]}
    assert found == ({"mixed-precision-overflow": "probable"} if script == "completed" else {})


@pytest.mark.parametrize("said", [*FAMILIES, *GENERAL, *BESIDE])
def test_a_guess_is_never_the_cause(said: str) -> None:
    answer = why(said + "\n")
    if answer.cause is not None:
        assert answer.cause.level in ("confident", "probable")
    else:
        assert {cause.level for cause in answer.also} <= {"guess"}
