"""`holdfast top` as people see it: driven at 80×24 and wide, on recorded runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from holdfast.cli.recording import any_alive
from holdfast.cli.top import judged, run_of
from holdfast.control_socket import NoControl, Refused
from holdfast.views.overview import RunReader
from holdfast.views.top.app import Run, TopApp
from holdfast.views.top.panels import ProcessState, Verdict
from holdfast.views.top.picture import svg
from tests.story import GIB
from tests.views.recorded_run import PID, RecordedRun
from tests.views.screen_text import lines, shown
from tests.workplace import PATIENCE_S

NARROW, WIDE = (80, 24), (130, 36)
WELL = Verdict("running", "The run is still going.")
Drive = Callable[[TopApp, Pilot[str]], Awaitable[None]]


def shows(recorded: RecordedRun, verdict: Verdict = WELL) -> Run:
    """Whatever is asked for is done."""
    return Run(
        reader=RunReader(recorded.path, any_alive),
        judge=lambda: verdict,
        ask=lambda do: f"{do} it was",
        stacks=lambda: "main thread: sleeps",
        look_at=lambda pid: ProcessState("running", 2 * GIB),
    )


def drive(run: Run, recorded: RecordedRun, what: Drive, size: tuple[int, int] = NARROW) -> str | None:
    """What the app ended with."""

    async def driven() -> str | None:
        app = TopApp(run, refresh_s=0.15, clock=lambda: recorded.at + 2.0)
        async with app.run_test(size=size) as pilot:
            await what(app, pilot)
        return app.return_value

    return asyncio.run(driven())


async def until(app: TopApp, pilot: Pilot[str], *texts: str) -> str:
    """The screen, once all of this is on it."""
    late = time.monotonic() + PATIENCE_S
    while not all(text in shown(app) for text in texts):
        assert time.monotonic() < late, f"{texts} is not on the screen:\n{shown(app)}"
        await pilot.pause(0.02)
    return shown(app)


def seen(run: Run, recorded: RecordedRun, *texts: str, size: tuple[int, int] = NARROW) -> str:
    found = []

    async def look(app: TopApp, pilot: Pilot[str]) -> None:
        found.append(await until(app, pilot, *texts))

    drive(run, recorded, look, size)
    return found[0]


@pytest.fixture
def going(tmp_path: Path) -> RecordedRun:
    run = RecordedRun(tmp_path, live=True)
    run.trains(40)
    run.event("checkpoint.saved", number=1, step=312)
    return run


@pytest.mark.parametrize(
    ("size", "gradient"),
    [(NARROW, "gradient   1.5       ▁▁▁"), (WIDE, "high     1.5")],
    ids=["80x24", "wide"],
)
def test_one_look_says_how_it_stands(going: RecordedRun, size: tuple[int, int], gradient: str) -> None:
    text = seen(
        shows(going),
        going,
        "The run is still going. Nothing is wrong that was noticed.",
        "20261116-120000-baseline  running for 42 s",
        "step 320  epoch 3  8 steps/s",
        "step time  125 ms",
        "25% waiting for data",
        "38%  12 GiB of 32 GiB",
        "25%  4 GiB of 16 GiB (its budget)",
        "loss       0.4444    █",
        gradient,
        "checkpoint 1 saved, of step 312",
        "started: python train.py --api-key",
        "processes: 1, 2.0 cores busy",
        f"{PID}    2 GiB  running  python train.py",
        "s stacks  c checkpoint  p pause/resume  x stop  ? help  q quit",
        size=size,
    )
    assert len(text.split("\n")) <= size[1]
    assert max(map(len, text.split("\n"))) <= size[0]
    assert "sk-1234" not in text


def test_it_changes_as_the_run_goes_on(going: RecordedRun) -> None:
    async def watch(app: TopApp, pilot: Pilot[str]) -> None:
        await until(app, pilot, "step 320")
        going.decided("warn", "leak", "memory grows 2 MiB a step")
        going.trains(10)
        await until(app, pilot, "step 400", "! memory grows 2 MiB a step")

    drive(shows(going), going, watch)


def test_a_verdict_is_asked_for_again_when_something_has_happened(going: RecordedRun) -> None:
    verdicts = [WELL, Verdict("running", "The run is still going.", ("Memory leaks",))]
    asked: list[Verdict] = []

    def judge() -> Verdict:
        asked.append(verdicts[len(asked)])
        return asked[-1]

    async def watch(app: TopApp, pilot: Pilot[str]) -> None:
        await until(app, pilot, "Nothing is wrong that was noticed")
        for _ in range(20):  # readings with nothing new
            await pilot.pause(0.02)
        assert len(asked) == 1
        going.decided("warn", "leak", "memory grows 2 MiB a step")
        await until(app, pilot, "noticed: Memory leaks")

    drive(replace(shows(going), judge=judge), going, watch)
    assert len(asked) == 2


def test_what_fills_up_says_when_it_is_full(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    run.seconds(60, job__held_bytes=4 * GIB, job__held_bytes__per_s=GIB / 30, job__memory_budget_bytes=16 * GIB)
    text = seen(shows(run), run, "37%  5.97 GiB of 16 GiB (its budget)  full in 5 min")
    assert "no training steps seen" in text


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "wide"])
def test_a_run_that_died_says_why_and_its_keys_say_that_it_has_ended(tmp_path: Path, size: tuple[int, int]) -> None:
    recorded = RecordedRun(tmp_path)
    recorded.trains(5)
    path = recorded.ends(137, 9)
    asked: list[str] = []
    run = replace(shows(recorded), judge=lambda: judged(path), ask=lambda do: asked.append(do) or "done")

    async def press(app: TopApp, pilot: Pilot[str]) -> None:
        await until(
            app, pilot, "failed after 5 s", "SIGKILL", "✗ the script was ended by SIGKILL", "none: the run has ended"
        )
        for key, words in (("s", "take stacks of"), ("c", "save"), ("p", "pause"), ("x", "stop")):
            await pilot.press(key)
            await until(app, pilot, f"the run has ended: there is nothing to {words}")

    drive(run, recorded, press, size)
    assert asked == []


def test_keys_ask_the_run_and_its_answer_is_shown(going: RecordedRun) -> None:
    asked: list[str] = []

    def ask(do: str) -> str:
        asked.append(do)
        if do == "checkpoint":
            raise Refused("no checkpoint was saved: no room")
        if do == "stop":
            raise NoControl("its watcher is gone")
        return f"{do}d"

    async def press(app: TopApp, pilot: Pilot[str]) -> None:
        await until(app, pilot, "step 320")
        await pilot.press("c")
        await until(app, pilot, "checkpoint: no checkpoint was saved: no room")
        await pilot.press("p")
        await until(app, pilot, "pause: paused")
        going.event("job.paused")
        await until(app, pilot, "paused for", "paused: p lets it go on")
        await pilot.press("p")
        await until(app, pilot, "resume: resumed")
        await pilot.press("x")
        await until(app, pilot, "Stop this run?")
        await pilot.press("n")
        await until(app, pilot, "not stopped")
        assert asked == ["checkpoint", "pause", "resume"]
        await pilot.press("x")
        await until(app, pilot, "Stop this run?")
        await pilot.press("y")
        await until(app, pilot, "stop: its watcher is gone")

    drive(replace(shows(going), ask=ask), going, press)
    assert asked == ["checkpoint", "pause", "resume", "stop"]


def test_stacks_are_shown_to_be_scrolled_and_left(going: RecordedRun) -> None:
    stacks = "\n".join(f"frame {number} of [bold]train.py" for number in range(100))

    async def press(app: TopApp, pilot: Pilot[str]) -> None:
        await until(app, pilot, "step 320")
        await pilot.press("s")
        text = await until(app, pilot, "frame 0 of [bold]train.py")
        assert "frame 99" not in text
        assert "c checkpoint" not in text
        await pilot.press("end")
        await until(app, pilot, "frame 99 of")
        await pilot.press("escape")
        await until(app, pilot, "step 320", "c checkpoint")

    drive(replace(shows(going), stacks=lambda: stacks), going, press)


def test_a_question_mark_explains_the_keys(going: RecordedRun) -> None:
    async def press(app: TopApp, pilot: Pilot[str]) -> None:
        await until(app, pilot, "step 320")
        await pilot.press("question_mark")
        await until(app, pilot, "save a checkpoint now", "Escape closes this.")
        await pilot.press("escape")
        await until(app, pilot, "step 320", "c checkpoint")

    drive(shows(going), going, press)


def test_neither_a_slow_verdict_nor_a_silent_watcher_holds_the_screen_up(going: RecordedRun) -> None:
    never = threading.Event()

    def judge() -> Verdict:
        never.wait(PATIENCE_S)
        return WELL

    def ask(do: str) -> str:
        never.wait(PATIENCE_S)
        return do

    async def press(app: TopApp, pilot: Pilot[str]) -> None:
        await until(app, pilot, "step 320", "looking…")
        await pilot.press("c")
        await until(app, pilot, "checkpoint: asked for, waiting for the answer…")
        await pilot.press("c")
        await until(app, pilot, "checkpoint: still waiting for the answer")
        going.trains(5)
        await until(app, pilot, "step 360")
        await pilot.press("q")

    began = time.monotonic()
    drive(replace(shows(going), judge=judge, ask=ask), going, press)
    assert time.monotonic() - began < PATIENCE_S
    never.set()


def test_a_job_without_a_framework_has_memory_and_processes(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, live=True)
    run.seconds(20, host__memory_total_bytes=8 * GIB, host__memory_available_bytes=6 * GIB, job__silent_s=300.0)
    silent = "nothing has moved for 5 min: no output, no bytes"
    text = seen(shows(run), run, "no training steps seen", silent, "25%  2 GiB of 8 GiB", "no loss seen")
    assert "step time" not in text


def test_a_run_that_was_started_again_shows_its_last_attempt(going: RecordedRun) -> None:
    going.event("attempt.exit", attempt=1, code=137, signal=9)
    going.event("attempt.start", attempt=2, reason="it was killed", script_pid=PID + 1)
    going.event("checkpoint.restored", step=312)
    going.trains(2)
    text = seen(
        shows(going),
        going,
        "for 44 s  attempt 2",
        "step 336",
        "✓ went on from the checkpoint of step 312",
        "! attempt 2 began",
    )
    assert "loss       0.4255    █▁\n" in text  # of this attempt alone


def test_gpus_stand_below_the_host(going: RecordedRun) -> None:
    going.event("gpu.found", index=0, name="NVIDIA H200")
    going.seconds(
        2,
        gpu0__memory_used_bytes=70 * GIB,
        gpu0__memory_total_bytes=140 * GIB,
        gpu0__utilisation_percent=93,
        gpu0__temperature_celsius=61,
    )
    text = seen(shows(going), going, "GPU 0", "50%  70 GiB of 140 GiB  93% busy  61 °C")
    assert text.index("host ") < text.index("GPU 0")


def test_text_from_a_run_is_shown_as_text(going: RecordedRun) -> None:
    going.decided("warn", "evil", "\x1b[2J[bold red]$x[/] `[@click=app.quit]`")
    text = seen(shows(going), going, "! ·[2J[bold red]$x[/] `[@click=app.quit]`")
    assert "\x1b" not in text


def test_a_record_that_cannot_be_read_ends_it_with_a_reason(going: RecordedRun) -> None:
    class Unreadable(RunReader):
        def read(self) -> object:  # type: ignore[override]
            raise PermissionError(13, "Permission denied")

    async def wait(app: TopApp, pilot: Pilot[str]) -> None:
        while app.is_running:
            await pilot.pause(0.02)

    run = replace(shows(going), reader=Unreadable(going.path, any_alive))
    assert "Permission denied" in str(drive(run, going, wait))


def test_the_picture_of_a_run_has_what_the_screen_shows(tmp_path: Path) -> None:
    recorded = RecordedRun(tmp_path)
    recorded.trains(5)
    path = recorded.ends()
    picture = svg(run_of(path), 100, 30, clock=lambda: recorded.at)
    assert picture.startswith("<svg") and "The run finished." in "\n".join(lines(picture))
