"""What is healthy is left alone: no rung is climbed, nothing is said, the exit code is the script's."""

from __future__ import annotations

import sys

import pytest

from tests.guard.arena import Result, run_in_arena
from tests.workplace import Workplace

pytestmark = [pytest.mark.root, pytest.mark.alone]


def _untouched(result: Result) -> None:
    assert (result.code, result.said) == (0, "")
    assert result.of("guard.stopped") == []


def test_a_job_that_sits_at_95_percent_of_its_container(workplace: Workplace) -> None:
    source = """
        import time
        kept = bytearray(b"x") * (340 << 20)
        for i in range(250):
            kept[(i * 4096) % len(kept)] = 1
            time.sleep(0.02)
    """
    _untouched(run_in_arena(workplace, source, memory=400))


def test_a_job_that_breathes_near_its_limit(workplace: Workplace) -> None:
    source = """
        import time
        kept = bytearray(b"x") * (310 << 20)
        for i in range(150):
            step = bytearray(b"x") * (25 << 20)
            time.sleep(0.02); del step; time.sleep(0.02)
    """
    _untouched(run_in_arena(workplace, source, memory=400))


def test_a_job_that_sits_at_95_percent_of_its_budget(workplace: Workplace) -> None:
    source = """
        import time
        kept = bytearray(b"x") * (280 << 20)
        time.sleep(4)
    """
    _untouched(run_in_arena(workplace, source, "--memory", "300M", memory=900))


def test_a_job_that_fills_the_page_cache(workplace: Workplace) -> None:
    source = """
        block = b"x" * (4 << 20)
        for turn in range(3):
            with open("big", "wb") as file:
                for _ in range(120): file.write(block)
            with open("big", "rb") as file:
                while file.read(4 << 20): pass
    """
    _untouched(run_in_arena(workplace, source, memory=300))


def test_workers_that_share_the_data_of_their_parent(workplace: Workplace) -> None:
    """Eight times 120 MiB by the sum of sizes, and once by what they hold."""
    source = """
        import multiprocessing, time
        kept = bytearray(b"x") * (120 << 20)
        workers = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(4,)) for _ in range(8)]
        for worker in workers: worker.start(); time.sleep(0.1)
        for worker in workers: worker.join()
    """
    _untouched(run_in_arena(workplace, source, "--memory", "300M", memory=900))


def test_a_large_steady_job_does_not_pay_for_a_neighbour_that_grows(workplace: Workplace) -> None:
    """The neighbour here is a program outside the job, in the same container, that takes all but the last of it."""
    (workplace.path / "grows.py").write_text(
        "import os, time\nkept = []\n"
        f"while not os.path.exists({str(workplace.path / 'holds')!r}): time.sleep(0.05)\n"
        "for _ in range(60): kept.append(bytearray(b'x') * (2 << 20)); time.sleep(0.02)\n"
        f"open({str(workplace.path / 'grown')!r}, 'w')\n"
        "time.sleep(3)\n"
    )
    source = """
        import os, time
        kept = []
        for _ in range(24): kept.append(bytearray(b"x") * (10 << 20)); time.sleep(0.02)  # at full speed it would be held
        time.sleep(1)
        open("holds", "w")
        while not os.path.exists("grown"): time.sleep(0.05)
        time.sleep(2)
    """
    beside = [sys.executable, str(workplace.path / "grows.py")]
    result = run_in_arena(workplace, source, memory=420, beside=beside)
    assert result.code == 0
    assert result.of("guard.stopped", "guard.held") == []
