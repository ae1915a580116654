"""Runs as a service inside the machine that systemd_machine.sh boots; there systemd is real and so are its groups.

Where version 2 has no memory control (it is bound to version 1), another controller stands in for it: then all but the
line around the job is seen.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.journal import Journal

GROUPS = Path("/sys/fs/cgroup")
REAL = "memory" in (GROUPS / "cgroup.controllers").read_text().split()
STAND_IN = "hugetlb"
PLAIN = [
    "setpriv",
    "--reuid=1000",
    "--regid=1000",
    "--clear-groups",
    "env",
    "XDG_RUNTIME_DIR=/run/user/1000",
    "HOME=/home/plain",
]
HOLDFAST = "/srv/holdfast"
USER_SLICE = GROUPS / "user.slice/user-1000.slice"
LOGIN = ["systemd-run", "--scope", "--quiet", "--collect"]

WHERE = """
import json, os, sys, time
time.sleep(0.5)
here = lambda pid: open(f"/proc/{pid}/cgroup").read().split("0::")[1].strip()
relay = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1])
try:
    limit = open("/sys/fs/cgroup" + here("self") + "/memory.max").read().strip()
except OSError:
    limit = ""
print(json.dumps({"job": here("self"), "watcher": here(os.getppid()), "relay": here(relay), "limit": limit,
                  "session": os.getsid(0) == os.getpid(), "names": sorted(os.environ)}))
sys.exit(7)
"""
failed: list[str] = []


def case(check: Callable[[], None]) -> None:
    began = time.monotonic()
    try:
        check()
        told = "ok"
    except Exception as error:  # noqa: BLE001 - told, and the next one is tried
        told = f"FAILED: {type(error).__name__} {error}"
        failed.append(check.__name__)
    print(f"{check.__name__.replace('_', ' ')}: {told} ({time.monotonic() - began:.1f} s)", flush=True)


class Done:
    def __init__(self, process: subprocess.CompletedProcess[str], place: Path, seconds: float) -> None:
        self.code, self.printed, self.said, self.seconds = process.returncode, process.stdout, process.stderr, seconds
        assert (place / ".holdfast/runs").is_dir(), (process.args, process.returncode, process.stderr)
        runs = sorted((place / ".holdfast/runs").iterdir())
        self.events = Journal(runs[-1] / "journal").events()

    def contained(self) -> dict[str, Any]:
        return next(event.data for event in self.events if event.kind == "job.contained")

    def where(self) -> dict[str, Any]:
        return json.loads(self.printed.splitlines()[-1])


def in_group(
    starter: list[str], command: str, *, plain: bool = True, source: str = WHERE, within_s: float = 60
) -> Done:
    """Beside a shell, as in a terminal."""
    place = Path(f"/srv/place-{time.monotonic_ns()}")
    place.mkdir()
    (place / "job.py").write_text(source)
    shutil.chown(place, 1000 if plain else 0)
    shell = ["bash", "-c", f"cd {place}; {command}; exit $?"]
    began = time.monotonic()
    done = subprocess.run([*starter, *shell], capture_output=True, text=True, timeout=within_s, check=False)
    return Done(done, place, time.monotonic() - began)


RUN = f"{HOLDFAST} run -- python3 job.py"


def login(number: int, *more: str) -> list[str]:
    return [*LOGIN, f"--unit=session-{number}", "--slice=user-1000.slice", *more, "--", *PLAIN]


def terminal(number: int) -> list[str]:
    return [*PLAIN, "systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit=vte-spawn-{number}", "--"]


def nothing_left() -> None:
    until = time.monotonic() + 5
    while left := [str(path) for path in GROUPS.rglob("holdfast-*")]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
    for starter in ([], [*PLAIN]):
        user = ["--user"] if starter else []
        listed = subprocess.run(
            [*starter, "systemctl", *user, "list-units", "--all", "--plain", "--no-legend", "holdfast-*"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert not listed.stdout.strip(), listed.stdout


def in_a_scope(done: Done, slice_name: str) -> None:
    assert done.code == 7, (done.code, done.said)
    contained = done.contained()
    assert contained.get("scope", "").startswith("holdfast-") and set(contained["controllers"]) == {
        "memory",
        "freezer",
    }, contained
    where = done.where()
    assert f"/{slice_name}/{contained['scope']}/holdfast-job-" in where["job"], where
    assert where["watcher"].endswith(f"/{contained['scope']}/holdfast-keepers"), where
    assert "holdfast" not in where["relay"] and where["session"], where
    if REAL:
        assert where["limit"].isdigit(), where
        assert not [event.data for event in done.events if event.kind in ("guard.failed", "guard.lost")]
    nothing_left()


def as_it_was(done: Done, reason: str) -> None:
    assert done.code == 7, (done.code, done.said)
    contained = done.contained()
    assert reason in contained.get("no_scope", "") and "memory" not in contained["controllers"], contained
    assert "/holdfast-" not in done.where()["watcher"], done.where()
    nothing_left()


def a_plain_user_who_is_logged_in_gets_a_scope() -> None:
    done = in_group(login(1), RUN)
    in_a_scope(done, "app.slice")
    twin = in_group(login(2), f"SLURM_JOB_ID=5 {RUN}")
    as_it_was(twin, "Slurm")
    assert [name for name in twin.where()["names"] if name != "SLURM_JOB_ID"] == done.where()["names"]


def a_desktop_terminal_gets_a_scope() -> None:
    in_a_scope(in_group(terminal(3), RUN), "app.slice")


def root_who_is_logged_in_gets_a_scope() -> None:
    starter = [*LOGIN, "--unit=session-4", "--slice=user-0.slice", "--"]
    in_a_scope(in_group(starter, RUN, plain=False), "user-0.slice")


def what_a_shell_started_at_once_is_in_it_too() -> None:
    command = f"{HOLDFAST} run -- sh -c '(sleep 0.5; exec cat /proc/self/cgroup) & wait; exit 7'"
    done = in_group(login(5), command)
    line = next(line for line in done.printed.splitlines() if line.startswith("0::"))
    assert f"/{done.contained()['scope']}/holdfast-job-" in line, (line, done.contained())
    nothing_left()


def a_service_keeps_its_job() -> None:
    starter = [
        "systemd-run",
        "--wait",
        "--pipe",
        "--property=DefaultDependencies=no",
        "--quiet",
        "--collect",
        "--setenv=PYTHONPATH=" + os.environ["PYTHONPATH"],
    ]
    as_it_was(in_group([*starter, "--unit=nightly", "--"], RUN, plain=False), "terminal's or a login's")


def a_limit_set_on_purpose_is_not_left() -> None:
    limit = "MemoryMax=900M" if REAL else "TasksMax=900"
    done = in_group(login(6, "-p", limit), RUN)
    if REAL:
        as_it_was(done, "memory.max")
    else:
        in_a_scope(done, "app.slice")  # every login has one of that kind


def another_users_slice_is_not_ours_to_divide() -> None:
    starter = [*LOGIN, "--unit=session-8", "--slice=user-0.slice", "--", *PLAIN]
    as_it_was(in_group(starter, RUN), "slice of the user's")


def a_manager_that_does_not_answer_delays_nothing() -> None:
    pid = int(
        subprocess.run(
            ["systemctl", "show", "-P", "MainPID", "user@1000.service"], capture_output=True, text=True, check=True
        ).stdout
    )
    os.kill(pid, signal.SIGSTOP)
    try:
        source = "import time; print(time.time())\n" + WHERE
        began = time.time()
        done = in_group(login(9), RUN, source=source)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert float(done.printed.splitlines()[0]) - began < 3.0
    assert done.code == 7 and "time" in done.contained()["no_scope"], (done.code, done.contained())
    nothing_left()


def a_job_goes_on_without_its_watcher_and_its_scope_goes_with_it() -> None:
    source = """
import os, signal, time
time.sleep(1)
group = lambda: open("/proc/self/cgroup").read().split("0::")[1].strip()
before = group()
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(1.5)
assert group() == before and "/holdfast-job-" in before, (before, group())
try:
    assert open("/sys/fs/cgroup" + before + "/memory.max").read().strip() == "max"
except FileNotFoundError:
    pass
raise SystemExit(9)
"""
    done = in_group(login(10), RUN, source=source)
    assert done.code == 9, (done.code, done.said)
    nothing_left()


def a_second_attempt_comes_into_the_same_groups() -> None:
    """As the watcher does it: it stands in the scope itself by then, so nobody has to be asked."""
    standing_in = "" if REAL else f"job_cgroups.HANDED_DOWN = {STAND_IN!r}"
    program = f"""
import os, subprocess
from holdfast.actions import job_cgroups
from holdfast.supervisor.guard.cgroup_placement import contain_in_scope
{standing_in}
first = subprocess.Popen(["sleep", "60"])
groups, about = contain_in_scope(job_cgroups.Groups(), os.getpid(), first.pid)
assert "scope" in about, about
first.kill()
first.wait()
second = subprocess.Popen(["sleep", "60"])
job_cgroups.bring_in(groups, second.pid)
assert job_cgroups.group_of(second.pid) in groups.folders["memory"] and "/holdfast-job-" in job_cgroups.group_of(second.pid)
second.kill()
second.wait()
assert job_cgroups.remove_groups(groups)
assert job_cgroups.group_of(os.getpid()).endswith(about["scope"])
"""
    shell = ["bash", "-c", 'python3 -c "$1"; exit $?', "bash", program]
    done = subprocess.run([*login(14), *shell], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    nothing_left()


def many_at_once_do_not_disturb_each_other() -> None:
    command = f"for i in 1 2 3 4; do {HOLDFAST} run -- python3 job.py & done; wait; false"
    done = in_group(login(11), command)
    groups = {json.loads(line)["job"] for line in done.printed.splitlines()}
    assert len(groups) == 4 and all(".scope/holdfast-job-" in group for group in groups), groups
    nothing_left()


def a_job_that_eats_everything_is_stopped_in_its_scope_and_the_neighbour_lives() -> None:
    subprocess.run(
        ["systemctl", "set-property", "--runtime", "user-1000.slice", "MemoryMax=700M", "MemorySwapMax=0"], check=True
    )
    neighbour = subprocess.Popen(
        [*login(12), "python3", "-c", "import time; kept = bytearray(b'x') * (60 << 20); time.sleep(60)"]
    )
    try:
        source = "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * (8 << 20))\n"
        done = in_group(login(13), RUN, source=source)
        kinds = [event.kind for event in done.events]
        assert done.code == 137 and neighbour.poll() is None, (done.code, neighbour.poll())
        assert done.contained().get("scope") and "guard.failed" not in kinds, (done.contained(), kinds)
        assert done.said.count("stopped the job before memory ran out") == 1 or "guard.stopped" not in kinds, done.said
    finally:
        neighbour.terminate()
        neighbour.wait()
        subprocess.run(["systemctl", "set-property", "--runtime", "user-1000.slice", "MemoryMax=infinity"], check=True)
    nothing_left()


def how_long_it_takes() -> None:
    took = []
    for number in range(5):
        done = in_group(login(20 + number), RUN)
        about = done.contained()
        took.append(about["scope_ms"])
    print(f"  from the script's start until it was in its scope: {', '.join(f'{ms:.0f}' for ms in took)} ms")


def prepare() -> None:
    standing_in = "" if REAL else f"import holdfast.actions.job_cgroups as c; c.HANDED_DOWN = {STAND_IN!r}\n"
    Path(HOLDFAST).write_text(
        f"#!/usr/bin/python3\n{standing_in}from holdfast.cli import main\nraise SystemExit(main())\n"
    )
    Path(HOLDFAST).chmod(0o755)
    if not REAL:
        print(
            f"version 2 has no memory control here: {STAND_IN} stands in for it, and no line around the job is seen",
            flush=True,
        )
        # systemd hands only what it knows down; what stands in is handed down by us, to where scopes are made.
        subprocess.Popen([*LOGIN, "--unit=session-99", "--slice=user-0.slice", "--", "sleep", "600"])
        subprocess.Popen([*PLAIN, "systemd-run", "--user", "--scope", "--quiet", "sleep", "600"])
        time.sleep(0.5)
        service = USER_SLICE / "user@1000.service"
        for level in (
            GROUPS,
            GROUPS / "user.slice",
            GROUPS / "user.slice/user-0.slice",
            USER_SLICE,
            service,
            service / "app.slice",
        ):
            (level / "cgroup.subtree_control").write_text(f"+{STAND_IN}")


def main() -> int:
    prepare()
    for check in (
        a_plain_user_who_is_logged_in_gets_a_scope,
        a_desktop_terminal_gets_a_scope,
        root_who_is_logged_in_gets_a_scope,
        what_a_shell_started_at_once_is_in_it_too,
        a_service_keeps_its_job,
        a_limit_set_on_purpose_is_not_left,
        another_users_slice_is_not_ours_to_divide,
        a_manager_that_does_not_answer_delays_nothing,
        a_job_goes_on_without_its_watcher_and_its_scope_goes_with_it,
        a_second_attempt_comes_into_the_same_groups,
        many_at_once_do_not_disturb_each_other,
        *((a_job_that_eats_everything_is_stopped_in_its_scope_and_the_neighbour_lives,) if REAL else ()),
        how_long_it_takes,
    ):
        case(check)
    print(f"{len(failed)} failed" if failed else "all as expected")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
