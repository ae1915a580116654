from __future__ import annotations

from pathlib import Path

from holdfast.supervisor import budget, learned
from holdfast.supervisor.task import Task

GIB = 1 << 30


def machine(root: Path, available: int, groups: dict[str, str], belonging: str, mount: str) -> Path:
    (root / "proc/7").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: {32 * GIB >> 10} kB\nMemAvailable: {available >> 10} kB\n")
    (root / "proc/7/cgroup").write_text(belonging)
    (root / "proc/7/mountinfo").write_text(mount)
    for path, text in groups.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


V2 = ("0::/job\n", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
V1 = ("9:memory:/job\n", "33 25 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")


def test_a_machine_without_limits_gives_what_is_available_less_a_reserve(tmp_path: Path) -> None:
    root = machine(tmp_path, 20 * GIB, {}, "", "")
    free = budget.free_bytes(root, 7)
    assert free is not None and 19 * GIB < free < 20 * GIB


def test_a_containers_limit_binds_and_its_page_cache_is_free(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/job"
    files = {
        f"{group}/memory.max": str(4 * GIB),
        f"{group}/memory.current": str(3 * GIB),
        f"{group}/memory.stat": f"inactive_file {2 * GIB}\nactive_file 0\n",
    }
    free = budget.free_bytes(machine(tmp_path, 20 * GIB, files, *V2), 7)
    assert free is not None and 2.8 * GIB < free < 3 * GIB


def test_so_does_one_of_version_1(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory/job"
    files = {
        f"{group}/memory.limit_in_bytes": str(2 * GIB),
        f"{group}/memory.usage_in_bytes": str(GIB),
        f"{group}/memory.stat": "total_inactive_file 0\ntotal_active_file 0\n",
    }
    free = budget.free_bytes(machine(tmp_path, 20 * GIB, files, *V1), 7)
    assert free is not None and 0.9 * GIB < free < GIB


def test_a_healthy_run_at_nine_tenths_is_within_the_budget(tmp_path: Path) -> None:
    for size in (GIB, 4 * GIB, 20 * GIB):
        free = budget.free_bytes(machine(tmp_path / str(size), size, {}, "", ""), 7)
        assert free is not None and free > 0.9 * size


def test_only_a_policy_that_acts_has_budgets(tmp_path: Path) -> None:
    for policy in ("observe", "advise"):
        assert budget.rescue_settings(Task(("python", "x.py"), tmp_path, tmp_path, policy)) == {}
    settings = budget.rescue_settings(
        Task(("python", "x.py"), tmp_path, tmp_path, memory_bytes=6 * GIB), k=4, environment={}
    )
    assert settings["rescue"] == {"k": 4, "host_budget_bytes": 6 * GIB, "gpu_budget_bytes": None}


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
