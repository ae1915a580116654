"""The first command of README.md, without its installation: dies of memory bare, finishes under Holdfast."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lab.case import Limits
from tests.staging import staged

ROOT = Path(__file__).parents[2]
FIRST_RUN = [sys.executable, "-m", "examples.first_run"]
READ_ONLY = 'for m in $(grep -o " /sys/fs/cgroup[^ ]*" /proc/mounts); do mount -o remount,bind,ro "$m"; done; exec "$@"'
PATIENCE_S = 400
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(500),
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
]


def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_DIR": str(place), "PYTHONUNBUFFERED": "1"}


def ran(command: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=environment(place), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_it_is_killed_by_itself_and_finishes_under_holdfast(tmp_path: Path) -> None:
    with staged(Limits(memory=64 << 20), "try"):
        pass
    done = ran(FIRST_RUN, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    bare, _, under_holdfast = done.stdout.partition("2 of 3")
    assert "\nKilled\n" in bare and "Epoch 2/4" not in bare
    assert "Epoch 4/4" in under_holdfast and "exit code 0 · container-memory-limit" in under_holdfast


@pytest.mark.root
@pytest.mark.slow
def test_without_rights_for_a_container_it_gets_a_budget(tmp_path: Path) -> None:
    no_rights = ["unshare", "-m", "--propagation", "private", "sh", "-c", READ_ONLY, "sh"]
    done = ran([*no_rights, *FIRST_RUN], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no memory cgroup can be made here" in done.stdout and "\nKilled\n" not in done.stdout
    assert "Epoch 4/4" in done.stdout and "exit code 0 · host-memory-exhausted" in done.stdout


def test_ctrl_c_ends_it_and_leaves_no_group(tmp_path: Path) -> None:
    with staged(Limits(memory=64 << 20), "try"):
        pass
    with subprocess.Popen(
        FIRST_RUN, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert any("Epoch 1" in line for line in process.stdout), "it never trained"
        assert groups_of(process.pid), "there is nothing to remove"
        os.killpg(process.pid, signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 130 and "first_run: stopped" in said
    assert not groups_of(process.pid)


def groups_of(pid: int) -> list[Path]:
    return list(Path("/sys/fs/cgroup").rglob(f"holdfast-first-run-{pid}"))


def test_without_tensorflow_it_says_what_to_run(tmp_path: Path) -> None:
    """Isolated from every site-packages but for the path of Holdfast itself."""
    source = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'src')!r}]; from examples import first_run; sys.exit(first_run.main())"
    done = ran([sys.executable, "-I", "-S", "-c", source], tmp_path)
    assert done.returncode == 2
    assert (
        done.stdout.startswith("first_run: tensorflow, keras not installed") and "examples/first_run.sh" in done.stdout
    )
