"""Native frames come from py-spy where it is there and allowed; where not, one line says why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.stack_dumps import Frame
from holdfast.supervisor import native_stacks
from holdfast.supervisor.native_stacks import NoNativeFrames, find_py_spy, native_frames, refused_by_the_kernel


@pytest.mark.parametrize(
    ("scope", "user", "reason"),
    [
        ("0", 1000, ""),
        ("1", 1000, "only a process's parents and root may look into it here (kernel.yama.ptrace_scope is 1)"),
        ("1", 0, ""),
        ("2", 1000, "only root may"),
        ("3", 0, "nobody may"),
        ("what", 1000, ""),
    ],
)
def test_the_kernels_rule_is_told_before_anything_is_tried(tmp_path: Path, scope: str, user: int, reason: str) -> None:
    (tmp_path / "scope").write_text(scope + "\n")
    told = refused_by_the_kernel(tmp_path / "scope", user)
    assert reason in told and bool(told) == bool(reason)
    assert refused_by_the_kernel(tmp_path / "missing", user) == ""


def test_without_py_spy_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native_stacks.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoNativeFrames, match=r"pip install 'holdfast\[native\]'"):
        find_py_spy()
    spy = _py_spy(tmp_path, "exit 0")
    assert find_py_spy() == spy


def test_its_answer_is_read_and_its_complaint_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_stacks, "PTRACE_SCOPE", tmp_path / "none")
    answer = (
        '[{"os_thread_id": 7, "frames": [{"name": "futex", "filename": "", "module": "libc.so", "line": 0}, '
        '{"name": "main", "filename": "train.py", "module": null, "line": 3}]}, {"os_thread_id": null, "frames": []}]'
    )
    spy = _py_spy(tmp_path, f"echo '{answer}'")
    assert native_frames(os.getpid(), spy) == {7: (Frame("libc.so", 0, "futex"), Frame("train.py", 3, "main"))}
    with pytest.raises(NoNativeFrames, match="py-spy said Permission Denied"):
        native_frames(os.getpid(), _py_spy(tmp_path, "echo 'Permission Denied: try sudo' >&2; exit 1"))


def _py_spy(folder: Path, does: str) -> str:
    path = folder / "py-spy"
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return str(path)
