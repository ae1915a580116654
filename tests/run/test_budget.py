from __future__ import annotations

from pathlib import Path

from holdfast.supervisor import budget, known_micro_batches
from holdfast.supervisor.run_spec import RunSpec

GIB = 1 << 30


def test_only_a_policy_that_acts_has_budgets(tmp_path: Path) -> None:
    for policy in ("observe", "advise"):
        assert budget.rescue_settings(RunSpec(("python", "x.py"), tmp_path, tmp_path, policy)) == {}
    settings = budget.rescue_settings(
        RunSpec(("python", "x.py"), tmp_path, tmp_path, memory_bytes=6 * GIB), k=4, environment={}
    )
    rescue = settings["rescue"]
    assert (rescue["k"], rescue["host_budget_bytes"], rescue["gpu_budget_bytes"]) == (4, 6 * GIB, None)
    unasked = budget.rescue_settings(RunSpec(("python", "x.py"), tmp_path, tmp_path), environment={})["rescue"]
    assert unasked["host_budget_bytes"] is None, "no limit of ours where the user named none"


def test_ranks_of_one_machine_share_it(tmp_path: Path) -> None:
    spec = RunSpec(("python", "x.py"), tmp_path, tmp_path, memory_bytes=6 * GIB)
    settings = budget.rescue_settings(spec, environment={"LOCAL_WORLD_SIZE": "3"})
    assert settings["rescue"]["host_budget_bytes"] == 2 * GIB


def test_what_fitted_is_known_to_the_next_run_of_the_same_script_and_to_no_other(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "train.py").write_text("one")

    def spec(run: str, *more: str) -> RunSpec:
        return RunSpec(("python", "train.py", *more), tmp_path / "runs" / run, tmp_path)

    assert known_micro_batches.recall(spec("a")) is None
    known_micro_batches.remember(spec("a"), 4)
    assert known_micro_batches.recall(spec("b")) == 4
    assert known_micro_batches.recall(spec("b", "--batch", "9")) is None
    (tmp_path / "train.py").write_text("another model")
    assert known_micro_batches.recall(spec("b")) is None
