from __future__ import annotations

from pathlib import Path

from holdfast.supervisor import budget, learned
from holdfast.supervisor.task import Task

GIB = 1 << 30


def test_only_a_policy_that_acts_has_budgets(tmp_path: Path) -> None:
    for policy in ("observe", "advise"):
        assert budget.rescue_settings(Task(("python", "x.py"), tmp_path, tmp_path, policy)) == {}
    settings = budget.rescue_settings(
        Task(("python", "x.py"), tmp_path, tmp_path, memory_bytes=6 * GIB), k=4, environment={}
    )
    rescue = settings["rescue"]
    assert (rescue["k"], rescue["host_budget_bytes"], rescue["gpu_budget_bytes"]) == (4, 6 * GIB, None)
    unasked = budget.rescue_settings(Task(("python", "x.py"), tmp_path, tmp_path), environment={})["rescue"]
    assert unasked["host_budget_bytes"] is None, "no limit of ours where the user named none"


def test_ranks_of_one_machine_share_it(tmp_path: Path) -> None:
    task = Task(("python", "x.py"), tmp_path, tmp_path, memory_bytes=6 * GIB)
    settings = budget.rescue_settings(task, environment={"LOCAL_WORLD_SIZE": "3"})
    assert settings["rescue"]["host_budget_bytes"] == 2 * GIB


def test_what_fitted_is_known_to_the_next_run_of_the_same_script_and_to_no_other(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "train.py").write_text("one")

    def task(run: str, *more: str) -> Task:
        return Task(("python", "train.py", *more), tmp_path / "runs" / run, tmp_path)

    assert learned.recall(task("a")) is None
    learned.remember(task("a"), 4)
    assert learned.recall(task("b")) == 4
    assert learned.recall(task("b", "--batch", "9")) is None
    (tmp_path / "train.py").write_text("another model")
    assert learned.recall(task("b")) is None
