"""The whole tree is known, and nothing of it is left behind."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from tests.workplace import HOLDFAST, Workplace

DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print("worker", os.getpid(), flush=True)
            time.sleep(120)
        os._exit(0)
    os.wait()
    time.sleep(float(sys.argv[1]))
"""


def test_a_worker_that_double_forks_is_stopped_with_the_run(workplace: Workplace) -> None:
    done = workplace.run([*workplace.script(DAEMON), "0.3"])
    worker = int(done.stdout.split()[1])
    assert done.returncode == 0
    assert not psutil.pid_exists(worker)
    assert f"(pid {worker})" in workplace.why_text()


def test_a_worker_that_refuses_to_leave_is_killed(workplace: Workplace) -> None:
    stubborn = DAEMON.replace("time.sleep(120)", "__import__('signal').signal(15, 1); time.sleep(120)")
    done = workplace.run([*workplace.script(stubborn), "0.3"])
    assert not psutil.pid_exists(int(done.stdout.split()[1]))


def test_helpers_that_leave_by_themselves_are_not_mentioned(workplace: Workplace) -> None:
    done = workplace.run([*workplace.script(DAEMON.replace("120", "0.2")), "0"])
    assert done.returncode == 0
    assert "left running" not in workplace.why_text()


@pytest.mark.root
def test_it_works_as_pid_1_and_leaves_no_zombies(workplace: Workplace) -> None:
    command = workplace.script("""
        import os, time
        if os.fork() == 0:
            if os.fork() == 0: time.sleep(0.3); os._exit(0)
            os._exit(0)
        os.wait(); time.sleep(1)
        states = [open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] for p in os.listdir("/proc") if p.isdigit()]
        print(os.getppid() < 10, "Z" in states)
        raise SystemExit(5)
    """)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *HOLDFAST, "run", *command],
        cwd=workplace.path, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == (b"True False\n", 5)


def test_a_shell_that_ends_takes_its_background_jobs_along(workplace: Workplace) -> None:
    done = workplace.run(["bash", "-c", f"{sys.executable} -c 'import time; time.sleep(99)' & echo $!; exit 3"])
    assert done.returncode == 3
    assert not psutil.pid_exists(int(done.stdout))
