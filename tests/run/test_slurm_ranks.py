"""`srun holdfast run …`: a run per task, found by what Slurm sets, and read as one job."""

from __future__ import annotations

import os

from tests.workplace import Workplace, wait_for

TASK = """
    import os, signal, time
    while len(os.listdir(".holdfast/runs")) < 2:
        time.sleep(0.05)
    if os.environ["SLURM_PROCID"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(2)
    raise RuntimeError("Connection closed by peer [10.0.0.7]:4411")
"""


def task(number: int) -> dict[str, str]:
    about = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": str(number)}
    return {**os.environ, **about, "HOLDFAST_REPORT": "off"}


def test_the_task_that_was_killed_explains_the_job(workplace: Workplace) -> None:
    script = workplace.script(TASK)
    tasks = [workplace.start(script, env=task(number)) for number in (0, 1)]
    codes = [one.wait(timeout=100) for one in tasks]
    runs = wait_for(lambda: sorted((workplace.path / ".holdfast/runs").iterdir()))

    assert codes == [1, 137]
    assert len(runs) == 2  # none was started again alone
    for run in runs:
        answer = workplace.why(run.name)
        assert answer["cause"]["title"] == "Rank 1 was killed by somebody (SIGKILL), not for memory"
        assert any("rank 0 followed" in item["text"] for item in answer["cause"]["evidence"])
