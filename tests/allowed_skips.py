"""A test that is skipped proves nothing. So a skip fails, unless `allowed_skips.toml` has it and its condition holds here."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("allowed_skips.toml")


@dataclass(frozen=True)
class Allowed:
    tests: str  # a pattern for the whole of the test's name
    reason: str  # a pattern for what it says when it is skipped
    when: str  # one of CONDITIONS
    why: str


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def has_no_gpu() -> bool:
    return not Path("/dev/nvidiactl").exists()


@functools.cache
def why_no_root() -> str:
    """Root in a plain container may mount nothing and make no groups: it is root by name only."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        tried = subprocess.run(
            ["unshare", "-m", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError as error:
        return f"needs unshare: {error}"
    return f"needs root that may mount: {tried.stderr.strip()}" if tried.returncode else ""


@functools.cache
def may_make_no_group() -> bool:
    """As the laboratory makes one: below the group of this process, of either version."""
    from lab.case import Limits
    from lab.stage import CannotStage, Stage

    try:
        with Stage(Limits(memory=100 << 20), f"holdfast-{os.getpid()}-may-it"):
            return False
    except CannotStage:
        return True


def has_no_such_python(said: str) -> bool:
    version = said.removeprefix("no Python ").split()[0]
    built = Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")
    return shutil.which(f"python{version}") is None and not any(built)


def has_no_mounted(kind: str) -> bool:
    return not any(line.split()[2] == kind for line in Path("/proc/mounts").read_text().splitlines())


# Each is asked with what the test said when it was skipped.
CONDITIONS: dict[str, Callable[[str], bool]] = {
    "outside CI": lambda _: not is_ci(),
    "no GPU": lambda _: has_no_gpu(),
    "not root": lambda _: bool(why_no_root()),
    "no group can be made": lambda _: may_make_no_group(),
    "no groups of version 1": lambda _: not Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists(),
    "no groups of version 2": lambda _: has_no_mounted("cgroup2") or may_make_no_group(),
    "no kernel log": lambda _: not os.access("/dev/kmsg", os.R_OK | os.W_OK),
    "one core": lambda _: len(os.sched_getaffinity(0)) < 2,
    "no systemd to copy": lambda _: not all(map(shutil.which, ("dpkg", "systemd-run", "dbus-daemon", "unshare"))),
    "no FUSE": lambda _: not os.access("/dev/fuse", os.R_OK | os.W_OK),
    "no such Python": has_no_such_python,
    "no tmux": lambda _: shutil.which("tmux") is None,
    "no Chromium": lambda _: shutil.which("chromium") is None,
}


@functools.cache
def allowed() -> tuple[Allowed, ...]:
    return tuple(Allowed(**row) for row in tomllib.loads(LIST.read_text())["skip"])


def objection(test: str, said: str) -> str:
    """Why this skip is none of those that are allowed; nothing where it is one."""
    listed = [row for row in allowed() if re.fullmatch(row.tests, test) and re.search(row.reason, said)]
    if not listed:
        return f"skipped, and {LIST.name} does not have it: {said}"
    if any(CONDITIONS[row.when](said) for row in listed):
        return ""
    return f"skipped because of {' or '.join(row.when for row in listed)!r}, which is not so here: {said}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: pytest.TestReport = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _judge(report, item.nodeid)
    return report  # type: ignore[return-value]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """A module that is skipped as a whole."""
    report: pytest.CollectReport = yield
    if report.outcome == "skipped":
        _judge(report, collector.nodeid)
    return report  # type: ignore[return-value]


def _judge(report: pytest.TestReport | pytest.CollectReport, test: str) -> None:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    wrong = objection(test, said.removeprefix("Skipped: "))
    if wrong:
        report.outcome, report.longrepr = "failed", wrong
