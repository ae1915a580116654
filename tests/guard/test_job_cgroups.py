"""Groups are made below the one we are in, and nothing of them is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast.actions.job_cgroups import Groups, find_groups, make_groups, process_name, remove_groups
from tests.guard.arena import GROUP, run_in_arena
from tests.workplace import Workplace

# It is brought in while it runs already.
WHERE = """
    import os, time
    until = time.monotonic() + %d
    while "holdfast-job-" not in open("/proc/self/cgroup").read() and time.monotonic() < until: time.sleep(0.02)
    print(os.getpriority(os.PRIO_PROCESS, 0))
    print(open("/proc/self/cgroup").read())
"""
SOON_S, LONG_S = 1, 20


def test_version_1_makes_one_in_each_tree(tmp_path: Path) -> None:
    parents = {"memory": str(tmp_path / "memory"), "freezer": str(tmp_path / "freezer"), "more": str(tmp_path / "none")}
    for name in ("memory", "freezer"):
        (tmp_path / name).mkdir()
    groups = make_groups(1, parents, "77", 0)
    assert groups.version == 1 and set(groups.folders) == {"memory", "freezer"}
    assert find_groups(1, parents, "77") == groups
    assert remove_groups(groups)
    assert list(tmp_path.rglob("holdfast-*")) == []


def test_version_2_leaves_no_trace_where_others_are_in_the_group_and_nothing_is_handed_down(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    (tmp_path / "cgroup.subtree_control").mkdir()  # cannot be written, also by root
    (tmp_path / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    before = sorted(tmp_path.iterdir())
    assert make_groups(2, {"memory": str(tmp_path)}, "77", os.getpid()) == Groups()
    assert sorted(tmp_path.iterdir()) == before


def test_groups_of_a_run_that_was_killed_are_swept(tmp_path: Path) -> None:
    names = {"holdfast-job-999999999-5": 3600, f"holdfast-job-{process_name(1)}": 3600, "holdfast-job-999999999-6": 0}
    for name, age_s in names.items():
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    make_groups(1, {"memory": str(tmp_path)}, "77-1", 0)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([*list(names)[1:], "holdfast-job-77-1"])


def test_where_nothing_can_be_made_there_is_nothing(tmp_path: Path) -> None:
    assert make_groups(1, {"memory": str(tmp_path / "not there")}, "77", 0) == Groups()
    assert make_groups(0, {}, "77", 0) == Groups()


@pytest.mark.root
@pytest.mark.alone
def test_the_job_is_below_our_own_group_and_the_watcher_is_not_in_it(workplace: Workplace) -> None:
    result = run_in_arena(workplace, WHERE % LONG_S, memory=600)
    contained = result.of("job.contained")[0].data
    if not contained["version"]:
        pytest.skip("no group of its own can be made here")
    assert set(contained["controllers"]) == {"memory", "freezer"}
    lines = [line for line in result.printed.splitlines() if "/holdfast-job-" in line]
    memory = [line for line in lines if ":memory:" in line or line.startswith("0::")]
    assert memory and all(GROUP in line for line in memory)
    assert not any(":cpu" in line or ":blkio:" in line for line in lines)  # its turn is what it was
    assert result.printed.startswith("0\n")


@pytest.mark.root
def test_what_a_shell_starts_at_once_is_in_it_too(workplace: Workplace) -> None:
    """Forked before the shell itself was brought in."""
    looks = f"for i in $(seq {LONG_S}0); do grep -q holdfast-job- /proc/self/cgroup && break; sleep 0.1; done"
    done = workplace.run(["sh", "-c", f"({looks}; exec cat /proc/self/cgroup) & wait"])
    lines = [line for line in done.stdout.decode().splitlines() if ":memory:" in line or line.startswith("0::")]
    if not os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK) and not any("holdfast-job" in one for one in lines):
        pytest.skip("no group of its own can be made here")
    assert any("/holdfast-job-" in line for line in lines), lines


@pytest.mark.root
@pytest.mark.alone
def test_advise_moves_nothing(workplace: Workplace) -> None:
    result = run_in_arena(workplace, WHERE % SOON_S, "--policy", "advise", memory=600)
    assert "holdfast-job-" not in result.printed


@pytest.mark.root
@pytest.mark.alone
def test_a_plain_user_gets_a_job_as_it_would_be(workplace: Workplace) -> None:
    result = run_in_arena(workplace, WHERE % SOON_S, memory=600, as_user=65534)
    assert "holdfast-job-" not in result.printed
    assert result.printed.startswith("0\n")
