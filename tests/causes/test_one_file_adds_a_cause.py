"""A cause with its text rules is one file: in a copy of the tree it answers, ranks and is started again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

FROST = """
from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, says, shell

CAUSE = CauseRecord(
    id="coolant-frozen",
    family="gpu",
    title="The coolant is frozen",
    meaning="The loop that cools the cards stands still. It has to thaw first.",
    sure="The pump says so.",
    says_more_than=("gpu-overheating",),
    restart=RestartAdvice(RestartKind.ONCE, "the coolant froze"),
    recipes=(shell("Thaw it", "coolctl thaw"),),
    exceptions=(rule(0.9, says("coolant is frozen", ("coolctl 1.0", "PumpError: coolant is frozen"))),),
    lines=(rule(0.9, says("pump stalled by ice", ("coolctl 1.0", "coolctl: pump stalled by ice"))),),
)
"""
TRAIN = """
import os, sys, time
import holdfast
for step in range(1, 41):
    time.sleep(0.02)
    holdfast.step(loss=1 / step)
    if step == 20 and not os.path.exists("thawed"):
        open("thawed", "w").close()
        time.sleep(1.2)  # the watcher has seen the steps
        raise RuntimeError("coolant is frozen")
print("trained")
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    shutil.copytree(Path(holdfast.__file__).parent, tree / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "holdfast" / "causes" / "coolant_frozen.py").write_text(FROST)
    return tree


def _holdfast(tree: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "HOLDFAST_DIR": str(tree / "state")}
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=tree,
        env=environment,
        timeout=120,
    )


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: coolant is frozen\n",
        "coolctl: pump stalled by ice\n",
        "HW Thermal Slowdown : Active\ncoolctl: pump stalled by ice\n",
    ],
)
def test_it_answers_and_stands_before_what_it_says_more_than(copied: Path, said: str) -> None:
    answer = json.loads(_holdfast(copied, "why", "-", "--json", given=said).stdout)
    assert answer["cause"]["id"] == "coolant-frozen" and answer["cause"]["remedies"][0]["how"] == "coolctl thaw"


def test_a_run_that_ended_of_it_is_started_again(copied: Path) -> None:
    (copied / "train.py").write_text(TRAIN)
    done = _holdfast(copied, "run", "--", sys.executable, "train.py")
    assert done.returncode == 0 and "trained" in done.stdout, done.stderr
    assert "the coolant froze at step 20; starting again" in done.stderr
    answer = json.loads(_holdfast(copied, "why", "--json").stdout)
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "coolant-frozen")
