"""`holdfast.attach()` and `holdfast.step()`: few words, no harm where nobody watches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.journal import Journal
from tests.workplace import Workplace, wait_for

LOOP = """
    import sys, time, holdfast
    run = holdfast.attach(name="loop")
    print("run", run, flush=True)
    last = time.perf_counter()
    for epoch in range(2):
        for i in range(60):
            time.sleep(0.02)
            wait_s, last = (time.perf_counter() - last) / 2, time.perf_counter()
            holdfast.step(loss=1 / (i + 1), epoch=epoch, batch_shape=(32, 10), wait_s=wait_s)
    if len(sys.argv) > 1:
        import os; os.kill(os.getpid(), 9)
"""


def _last(run: Path) -> dict[str, float | None]:
    return {sample.name: sample.value for sample in Journal(run / "journal").samples()}


def test_a_loop_that_attaches_is_watched_and_counted(workplace: Workplace) -> None:
    subprocess.run(workplace.script(LOOP), cwd=workplace.path, check=True, capture_output=True)
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    wait_for(lambda: Journal(run / "journal").events("run.end"))
    seen = _last(run)
    assert (seen["train.steps_count"], seen["train.epoch_count"]) == (120, 1)
    assert seen["train.wait_ratio"] is not None and 0.3 < seen["train.wait_ratio"] < 0.6
    losses = [sample for sample in Journal(run / "journal").samples(["train.loss"]) if sample.value is not None]
    assert losses and all(abs(one.value - 1 / ((one.step - 1) % 60 + 1)) < 1e-9 for one in losses)  # type: ignore[operator]
    assert Journal(run / "journal").events("train.batch")[0].data["shape"] == [32, 10]
    assert workplace.why()["outcome"] == "completed"


def test_an_attached_process_that_is_killed_is_not_called_finished(workplace: Workplace) -> None:
    subprocess.run([*workplace.script(LOOP), "die"], cwd=workplace.path, check=False, capture_output=True)
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    wait_for(lambda: Journal(run / "journal").events("run.end"))
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]) == ("unknown", None)
    assert _last(run)["train.steps_count"] == 120


@pytest.mark.parametrize("imports", ["holdfast", "holdfast, torch"])
def test_under_holdfast_run_attach_starts_nothing_more(workplace: Workplace, imports: str) -> None:
    source = LOOP.replace("time, holdfast", f"time, {imports}")
    done = workplace.run(workplace.script(source), timeout=200)
    assert done.returncode == 0, done.stderr
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    assert done.stdout.decode().split() == ["run", run.name]
    assert _last(run)["train.steps_count"] == 120


def test_step_without_a_watcher_does_nothing() -> None:
    code = "import holdfast; holdfast.step(loss=1.0); print('fine')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"fine\n"


def test_importing_holdfast_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys, holdfast; print([m for m in ('psutil', 'numpy', 'torch', 'holdfast.inside') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_where_no_watcher_can_be_started_the_program_goes_on(workplace: Workplace) -> None:
    (workplace.path / "taken").write_text("a file")
    source = LOOP.replace('name="loop"', 'dir="taken"').replace("range(60)", "range(3)")
    done = subprocess.run(workplace.script(source), cwd=workplace.path, capture_output=True, check=True, timeout=60)
    assert done.stdout == b"run \n"
