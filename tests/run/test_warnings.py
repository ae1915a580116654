"""One calm line before the edge, with the time that is left; silence where nothing is wrong."""

from __future__ import annotations

import re
import subprocess

import pytest

from lab.case import Limits, Tmpfs
from tests.staging import staged
from tests.workplace import HOLDFAST, Workplace

pytestmark = [pytest.mark.root, pytest.mark.alone]

MB = 1 << 20


def _run(workplace: Workplace, source: str, limits: Limits, *options: str) -> tuple[int, str]:
    command = [*HOLDFAST, "run", *options, "--", *workplace.script(source)]
    with staged(limits, workplace.path.name) as stage:
        done = subprocess.run(stage.wrap(command), cwd=workplace.path, capture_output=True, timeout=200, check=False)
    return done.returncode, done.stderr.decode()


FILLS_MEMORY = """
    import time
    kept = []
    while True:
        kept.append(bytearray(6 << 20)); time.sleep(0.1)
"""


def test_memory_that_fills_is_announced_before_the_kernel_kills(workplace: Workplace) -> None:
    code, said = _run(workplace, FILLS_MEMORY, Limits(memory=400 * MB), "--policy", "advise")
    assert code == 137
    lines = [line for line in said.splitlines() if line.startswith("holdfast: ")]
    assert len(lines) == 4, said  # the last three at the end
    assert re.fullmatch(
        r"holdfast: memory of this container: \d+ MiB of 400 MiB in use, growing [\d.]+ MiB/s: full in about \d+ s",
        lines[0],
    ), lines
    answer = workplace.why()
    assert answer["cause"]["id"] == "container-memory-limit"
    assert len(answer["actions"]) == 1 and answer["actions"][0]["result"] == "said"


def test_observe_records_it_and_says_nothing(workplace: Workplace) -> None:
    _, said = _run(workplace, FILLS_MEMORY, Limits(memory=400 * MB), "--policy", "observe")
    assert said == ""
    assert workplace.why()["actions"][0]["result"] == "recorded"


def test_a_budget_of_the_users_own_is_watched_too(workplace: Workplace) -> None:
    source = FILLS_MEMORY.replace("while True", "for _ in range(60)").replace("0.1", "0.15")
    code, said = _run(workplace, source, Limits(memory=1500 * MB), "--memory", "300M", "--policy", "advise")
    assert code == 0
    assert "the job's memory budget" in said


@pytest.mark.slow
def test_a_job_that_sits_at_95_percent_is_left_alone(workplace: Workplace) -> None:
    source = """
        import time
        kept = bytearray(290 << 20)
        time.sleep(12)
    """
    code, said = _run(workplace, source, Limits(memory=360 * MB))
    assert (code, said) == (0, "")


@pytest.mark.slow
def test_page_cache_is_not_memory_in_use(workplace: Workplace) -> None:
    source = """
        import time
        block = b"x" * (4 << 20)
        for _ in range(3):
            with open("big", "wb") as file:
                for _ in range(100): file.write(block); time.sleep(0.03)
    """
    code, said = _run(workplace, source, Limits(memory=200 * MB))
    assert (code, said) == (0, "")


def test_a_disk_and_open_files_that_run_out_are_announced(workplace: Workplace) -> None:
    """Both go on filling until it was said: how often a loaded machine lets us look is its own affair."""
    source = """
        import os, time
        kept = [open("/dev/null") for _ in range(895)]
        with open("out/log", "wb") as file:
            file.write(bytes(48 << 20))
            for i in range(560):
                if os.path.exists("enough"): break
                if i % 6 == 0 and len(kept) < 985: kept.append(open("/dev/null"))
                left = os.statvfs("out").f_bavail * os.statvfs("out").f_bsize
                file.write(bytes(left // 50)); file.flush()
                time.sleep(0.1)
    """
    command = [*HOLDFAST, "run", "--", *workplace.script(source)]
    with staged(Limits(nofile=1000, tmpfs=(Tmpfs("out", 64 * MB),)), workplace.path.name) as stage:
        process = subprocess.Popen(stage.wrap(command), cwd=workplace.path, stderr=subprocess.PIPE, text=True)
        workplace.started.append(process)
        said = ""
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if "disk " in said and "open files: " in said:
                (workplace.path / "enough").touch()
        assert process.wait(60) == 0
    assert re.search(r"holdfast: disk \S*/out: .*: full in about \d+ s", said), said
    assert re.search(r"holdfast: open files: \d+ of 1000 in use, growing .*: full in about \d+ s", said), said
