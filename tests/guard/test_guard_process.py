"""The guard is nobody's burden: it goes with its watcher, and a job it held goes on without it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from holdfast.inside.headroom import GROUP_FILES
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from tests.allowed_skips import may_make_no_group
from tests.guard.arena import run_in_arena
from tests.workplace import PATIENCE_S, Workplace, wait_for

SLEEPS = "import time; print('on', flush=True); time.sleep(250)"


def _guard_of(relay: int) -> psutil.Process:
    return wait_for(lambda: next((p for p in psutil.Process(relay).children() if p.name() == "hf-guard"), None))


def _groups(name: str) -> list[Path]:
    """Those whose name begins so. Groups of others come and go meanwhile."""
    found = os.walk("/sys/fs/cgroup")
    return [Path(folder) / below for folder, folders, _ in found for below in folders if below.startswith(name)]


def _contained(script: int) -> str:
    """The name of the job's own group, once it is in it."""

    def name() -> str | None:
        words = Path(f"/proc/{script}/cgroup").read_text().replace("/", "\n").splitlines()
        return next((word for word in words if word.startswith("holdfast-job-")), None)

    if may_make_no_group():
        pytest.skip("no group of its own can be made here")
    return str(wait_for(name))


def test_it_is_no_part_of_the_job(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script(SLEEPS))
    guard, watcher = _guard_of(relay.pid), workplace.watcher_of(relay.pid)
    assert guard.pid not in [process.pid for process in watcher.children(recursive=True)]
    # It has its name a moment before it lets go of the relay's output.
    wait_for(lambda: {Path(f"/proc/{guard.pid}/fd/{fd}").readlink().name for fd in (0, 1, 2)} == {"null"})


def test_it_goes_when_its_watcher_is_killed(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script(SLEEPS))
    guard, watcher = _guard_of(relay.pid), workplace.watcher_of(relay.pid)
    watcher.kill()
    wait_for(lambda: not guard.is_running() or guard.status() == psutil.STATUS_ZOMBIE)


def test_a_job_that_is_held_goes_on_when_the_guard_is_killed(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script(SLEEPS))
    script, guard = workplace.script_of(relay.pid), _guard_of(relay.pid)
    os.kill(script.pid, signal.SIGSTOP)
    wait_for(lambda: script.status() == psutil.STATUS_STOPPED)
    guard.kill()
    wait_for(lambda: script.status() != psutil.STATUS_STOPPED)


@pytest.mark.root
def test_a_frozen_job_goes_on_when_the_guard_is_killed(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script(SLEEPS))
    script, guard = workplace.script_of(relay.pid), _guard_of(relay.pid)
    name = _contained(script.pid)
    states = [p for p in _groups(name) for p in (p / "freezer.state", p / "cgroup.freeze") if p.exists()]
    if not states:
        pytest.skip("no group that can be frozen can be made here")
    states[0].write_text("FROZEN" if states[0].name == "freezer.state" else "1")
    guard.kill()
    wait_for(lambda: states[0].read_text().strip() in ("THAWED", "0"))


def test_its_groups_are_gone_after_the_run(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script("import time; time.sleep(0.5)"))
    relay.wait(timeout=PATIENCE_S)
    wait_for(lambda: not _groups(f"holdfast-job-{relay.pid}-"), 20.0)


def test_its_groups_are_gone_also_when_the_watcher_was_killed(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script("import time; time.sleep(1.5)"))
    workplace.script_of(relay.pid)
    workplace.watcher_of(relay.pid).kill()
    assert relay.wait(timeout=PATIENCE_S) == 0
    wait_for(lambda: not _groups(f"holdfast-job-{relay.pid}-"), 20.0)


@pytest.mark.root
def test_the_line_around_the_job_is_lifted_when_the_guard_is_killed(workplace: Workplace) -> None:
    relay = workplace.start(workplace.script(SLEEPS))
    script, guard = workplace.script_of(relay.pid), _guard_of(relay.pid)
    _contained(script.pid)
    memory = hierarchy_of("memory", membership(Path("/"), script.pid), Path("/"), script.pid)
    if memory is None or f"/holdfast-job-{relay.pid}-" not in memory.folders[0]:
        pytest.skip("no memory group of its own can be made here")
    line = Path(memory.folders[0]) / GROUP_FILES[memory.version].limit
    machine = psutil.virtual_memory().total
    wait_for(lambda: line.read_text().strip().isdigit() and int(line.read_text()) <= machine)
    guard.kill()
    wait_for(lambda: line.read_text().strip() == "max" or int(line.read_text()) > machine)


@pytest.mark.root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")
@pytest.mark.alone
def test_a_plain_user_is_guarded_too(workplace: Workplace) -> None:
    source = """
        import os
        assert os.getuid() == 65534
        kept = []
        while True:
            kept.append(bytearray(b"x") * (8 << 20))
    """
    rungs: list[list[str]] = []
    while len(rungs) < 3 and ["held", "stopped"] not in rungs:
        result = run_in_arena(workplace, source, memory=700, neighbour_mib=60, as_user=65534)
        assert result.code == 137
        assert result.neighbour["lived"]
        assert result.of("job.contained")[0].data["controllers"] == []
        rungs.append(result.rungs[-2:])
    # A plain user's guard has no priority: where many want the processors, the kernel may be there before it has a turn.
    assert ["held", "stopped"] in rungs, (rungs, result.said)
