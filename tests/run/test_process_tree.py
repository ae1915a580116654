"""The whole tree is known, and nothing of it is left behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, is_gone

DAEMON = """
    import os, time
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print("worker", os.getpid(), flush=True)
            os.write(tell, b"x")
            time.sleep(120)
        os._exit(0)
    os.wait()
    os.read(told, 1)  # the worker has begun
"""


def test_a_worker_that_double_forks_is_stopped_with_the_run(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(DAEMON))
    worker = int(done.stdout.split()[1])
    assert done.returncode == 0
    assert is_gone(worker)
    assert f"(pid {worker})" in workplace.why_text()


def test_a_worker_that_refuses_to_leave_is_killed(workplace: Workplace) -> None:
    stubborn = DAEMON.replace("print(", "__import__('signal').signal(15, 1); print(")
    done = workplace.run(workplace.script(stubborn))
    assert is_gone(int(done.stdout.split()[1]))


def test_helpers_that_leave_by_themselves_are_not_mentioned(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(DAEMON.replace("120", "0.2")))
    assert done.returncode == 0
    assert "left running" not in workplace.why_text()


@pytest.mark.root
def test_it_works_as_pid_1_and_leaves_no_zombies(workplace: Workplace) -> None:
    command = workplace.script("""
        import os, time
        if os.fork() == 0:
            if os.fork() == 0: time.sleep(0.3); os._exit(0)
            os._exit(0)
        os.wait()
        def zombies():
            for p in filter(str.isdigit, os.listdir("/proc")):
                try: yield open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] == "Z"
                except OSError: pass
        time.sleep(0.5)
        until = time.monotonic() + 60
        while any(zombies()) and time.monotonic() < until: time.sleep(0.1)  # nobody is collected in the same instant
        print(os.getppid() < 10, any(zombies()))
        raise SystemExit(5)
    """)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *HOLDFAST, "run", *command],
        cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == (b"True False\n", 5)


def test_a_shell_that_ends_takes_its_background_jobs_along(workplace: Workplace) -> None:
    done = workplace.run(["bash", "-c", f"{sys.executable} -c 'import time; time.sleep(99)' & echo $!; exit 3"])
    assert done.returncode == 3
    assert is_gone(int(done.stdout))
