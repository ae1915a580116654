import os
import subprocess
from pathlib import Path

import pytest

from lab.case import Limits, Tmpfs
from lab.stage import CannotStage, Hierarchy, Stage


def v1(tmp_path: Path, own: str = "/job") -> Hierarchy:
    for controller in ("memory", "pids"):
        (tmp_path / "fs" / controller / own.lstrip("/")).mkdir(parents=True)
    (tmp_path / "own").write_text(f"5:memory:{own}\n4:pids:{own}\n0::/\n")
    return Hierarchy(tmp_path / "fs", tmp_path / "own", enter=lambda _: "")


def v2(tmp_path: Path, own: str, handed_down: dict[str, str]) -> Hierarchy:
    for group in ("", *handed_down):
        folder = tmp_path / "fs" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.controllers").write_text("")
        (folder / "cgroup.subtree_control").write_text(handed_down.get(group, ""))
    (tmp_path / "own").write_text(f"0::{own}\n")
    return Hierarchy(tmp_path / "fs", tmp_path / "own", enter=lambda _: "")


def test_nothing_asked_for_is_nothing_put_around() -> None:
    with Stage(Limits(), "x") as stage:
        assert stage.wrap(["python", "train.py"]) == ["python", "train.py"]


def test_version_1_groups_are_made_below_our_own_and_taken_away(tmp_path: Path) -> None:
    group, is_v2 = v1(tmp_path).create("memory", "x")
    assert (group, is_v2) == (tmp_path / "fs" / "memory" / "job" / "x", False)


def test_a_version_1_group_that_is_not_visible_here_becomes_the_top(tmp_path: Path) -> None:
    hierarchy = v1(tmp_path)
    (tmp_path / "own").write_text("5:memory:/docker/abc\n")
    assert hierarchy.create("memory", "x")[0] == tmp_path / "fs" / "memory" / "x"


def test_version_2_uses_the_nearest_group_that_hands_the_controller_down(tmp_path: Path) -> None:
    hierarchy = v2(tmp_path, "/a/b/c", {"": "memory pids", "a": "memory pids", "a/b": "pids", "a/b/c": ""})
    assert hierarchy.create("memory", "x") == (tmp_path / "fs" / "a" / "x", True)
    assert hierarchy.create("pids", "y") == (tmp_path / "fs" / "a" / "b" / "y", True)


def test_a_group_that_nobody_may_enter_is_taken_away_and_the_next_one_above_is_tried(tmp_path: Path) -> None:
    v2(tmp_path, "/a/b", {"": "pids", "a": "pids", "a/b": "pids"})
    refused = tmp_path / "fs" / "a" / "b" / "x"
    hierarchy = Hierarchy(tmp_path / "fs", tmp_path / "own", enter=lambda group: ": no" if group == refused else "")
    assert hierarchy.create("pids", "x") == (tmp_path / "fs" / "a" / "x", True)
    assert not refused.exists()
    with pytest.raises(CannotStage, match="no pids cgroup can be made here: no process may"):
        Hierarchy(tmp_path / "fs", tmp_path / "own", enter=lambda _: ": no process may").create("pids", "y")


def test_a_machine_without_cgroups_says_so(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/\n")
    with (
        pytest.raises(CannotStage, match="no memory cgroup can be made here"),
        Stage(Limits(memory=1 << 30), "x", Hierarchy(tmp_path, tmp_path / "own")),
    ):
        pass


def test_limits_hold_inside_and_the_command_keeps_its_words() -> None:
    with Stage(Limits(nofile=99, cpu_seconds=7, address_space=1 << 30, cpus=1), "x") as stage:
        command = stage.wrap(["sh", "-c", 'ulimit -n; ulimit -S -t; ulimit -v; nproc; echo "$1"', "sh", "two words"])
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split("\n") == ["99", "7", str(1 << 20), "1", "two words", ""]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_programs_side_by_side_are_not_held_to_the_same_core() -> None:
    said = []
    for _ in range(2):
        with Stage(Limits(cpus=1), "x") as stage:
            command = stage.wrap(["sh", "-c", "grep Cpus_allowed_list /proc/self/status"])
            said.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert said[0] != said[1]


@pytest.mark.root
def test_a_small_file_system_is_seen_inside_only(tmp_path: Path) -> None:
    try:
        with Stage(Limits(tmpfs=(Tmpfs("full", 1 << 20),)), "x") as stage:
            command = stage.wrap(["sh", "-c", "head -c 2000000 /dev/zero > full/file; df --output=size full"])
            ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    except CannotStage as reason:
        pytest.skip(str(reason))
    assert ran.stdout.split()[-1] == "1024"
    assert "No space left" in ran.stderr
    assert not list((tmp_path / "full").iterdir())


@pytest.mark.root
@pytest.mark.alone
def test_a_memory_limit_kills_and_its_group_is_taken_away() -> None:
    eat = ["python3", "-c", "x = bytearray(400 << 20)"]
    try:
        with Stage(Limits(memory=100 << 20, pids=20), f"lab-test-{os.getpid()}") as stage:
            groups = list(stage._groups)
            ran = subprocess.run(stage.wrap(eat), check=False)
    except CannotStage as reason:
        pytest.skip(str(reason))
    assert ran.returncode == -9
    assert groups and not any(group.exists() for group in groups)


@pytest.mark.root
def test_the_kernel_log_can_be_taken_away() -> None:
    try:
        with Stage(Limits(kernel_log=False), "x") as stage:
            ran = subprocess.run(stage.wrap(["cat", "/dev/kmsg"]), capture_output=True, text=True, check=False)
    except CannotStage as reason:
        pytest.skip(str(reason))
    assert "Permission denied" in ran.stderr
