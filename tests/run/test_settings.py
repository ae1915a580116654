"""What the part inside a training process is told, by the options of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.supervisor import budget
from holdfast.supervisor.launch import leave_settings, script_environment
from holdfast.supervisor.run_spec import RunSpec


def _left(path: Path, attempt: int = 1, again: bool = False, k: int | None = None, **how: Any) -> dict[str, Any]:
    (path / "inside").mkdir(exist_ok=True)
    leave_settings(RunSpec(("true",), path, path, **how), attempt, again, k)
    left: dict[str, Any] = json.loads((path / "inside/settings.json").read_text())
    return left


def test_by_default_it_saves_and_rescues(tmp_path: Path) -> None:
    left = _left(tmp_path)
    groups = left.pop("groups")
    assert groups == budget.groups(), "where to read what is left"
    assert not any(not Path(group["folder"]).is_dir() for group in groups)
    assert left == {
        "policy": "protect",
        "attempt": 1,
        "checkpoint": {"directory": str(tmp_path / "checkpoints"), "interval_s": None, "resume": False},
        "rescue": {"k": None, "host_budget_bytes": None, "gpu_budget_bytes": None, "ranks": 1},
    }


def test_a_later_attempt_resumes_with_what_was_decided(tmp_path: Path) -> None:
    left = _left(tmp_path, 3, again=True, k=4, checkpoint=30.0, memory_bytes=1 << 30)
    assert (left["attempt"], left["checkpoint"]["resume"], left["checkpoint"]["interval_s"]) == (3, True, 30.0)
    assert (left["rescue"]["k"], left["rescue"]["host_budget_bytes"]) == (4, 1 << 30)


@pytest.mark.parametrize("how", [{"checkpoint": "off"}, {"resume_args": "--load {checkpoint}"}])
def test_none_are_saved_where_they_are_off_or_the_script_has_its_own(tmp_path: Path, how: dict[str, Any]) -> None:
    left = _left(tmp_path, **how)
    assert "checkpoint" not in left and "rescue" in left


def test_advice_takes_over_nothing(tmp_path: Path) -> None:
    assert _left(tmp_path, policy="advise") == {"policy": "advise", "attempt": 1, "groups": budget.groups()}


def test_strings_hash_the_same_in_every_attempt_of_a_run_and_otherwise_in_the_next_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (RunSpec(("python",), tmp_path / name, tmp_path) for name in ("one", "two"))
    seeds = [script_environment({}, spec)["PYTHONHASHSEED"] for spec in (one, one, two)]
    assert seeds[0] == seeds[1] != seeds[2]
